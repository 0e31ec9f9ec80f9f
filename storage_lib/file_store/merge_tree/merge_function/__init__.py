"""Merge functions: all versions of a key to one row, one module per engine."""
