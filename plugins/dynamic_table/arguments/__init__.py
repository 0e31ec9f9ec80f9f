"""Checks of operators' arguments after template rendering."""
