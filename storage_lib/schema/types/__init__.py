"""Logical types of columns, their text forms, and the corresponding Arrow types."""
