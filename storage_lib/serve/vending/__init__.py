"""Temporary credentials of the store, each for one table's files."""
