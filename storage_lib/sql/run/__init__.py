"""Execution of statements: each is checked against the catalog, then run."""
