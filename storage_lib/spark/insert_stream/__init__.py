"""Streams that keep the answer of a query in a table, from the commits of the tables that it reads."""
