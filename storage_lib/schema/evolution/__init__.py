"""Versions of a schema: what may change, and how files of an older version are read."""
