"""Statements as frozen dataclasses."""
