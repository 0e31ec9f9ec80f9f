"""Writes by one process: given rows, and changes that depend on the stored rows."""
