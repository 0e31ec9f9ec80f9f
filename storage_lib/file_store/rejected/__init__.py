"""Rejected records of a table: their files, the list of these files, and the change of both by a commit."""
