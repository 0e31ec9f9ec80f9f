"""Materialized tables: created from a query, and kept equal to its answer by refreshes. Knows no engine by name."""
