"""Batch reads and writes as Spark's data source API asks for them."""
