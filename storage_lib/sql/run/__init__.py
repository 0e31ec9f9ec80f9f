"""Statements at work: each checks against the catalog, then acts."""
