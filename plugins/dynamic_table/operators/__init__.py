"""Operators, one per file. Each calls one operation of the library and returns a small JSON value."""
