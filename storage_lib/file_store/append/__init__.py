"""Append tables: rows are only added, and small files are compacted."""
