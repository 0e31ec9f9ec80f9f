"""Writes by one process: rows as they are given, and changes that depend on the stored rows."""
