"""Queries: tables of ours as views of Spark's, and a query's rows as a table's."""
