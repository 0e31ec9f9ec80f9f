"""Merge functions: from all versions of a key to one row, one file per engine."""
