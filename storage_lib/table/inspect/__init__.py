"""Metadata of a table: description, health, statistics, commits and system tables."""
