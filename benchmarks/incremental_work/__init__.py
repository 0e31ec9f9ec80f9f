"""Materialized tables under change: TPC-H with its refresh functions, Nexmark, and one large table."""
