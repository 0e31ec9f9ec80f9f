"""Snapshots, tags, branches and consumers of a table, and the schema that a snapshot is read by."""
