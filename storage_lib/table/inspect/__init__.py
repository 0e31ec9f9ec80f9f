"""Metadata of a table: its description, health and statistics, its commits, its system tables."""
