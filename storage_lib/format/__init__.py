"""Formats of data files (Parquet, ORC, Avro), and the container of manifests."""
