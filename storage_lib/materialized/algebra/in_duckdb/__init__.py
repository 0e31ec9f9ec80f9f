"""Statements for DuckDB that give the values that Spark gives."""
