"""Batch reads and writes behind Spark's Python data source API."""
