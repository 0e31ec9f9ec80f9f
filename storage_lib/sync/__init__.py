"""Follows all tables of a database by the topics of their changes: creates tables, and ingests into each."""
