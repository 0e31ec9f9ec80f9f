"""Relational operators of a compiled query, as frozen values."""
