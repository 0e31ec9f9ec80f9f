"""Queries: dynamic tables as Spark views, and query results in the types of a table."""
