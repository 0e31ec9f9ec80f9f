"""Comparison of a table with its source: another database, table, folder or query."""
