"""Statements over tables, computed by DuckDB in this process, without Spark."""
