"""Statements as frozen values."""
