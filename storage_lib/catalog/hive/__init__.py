"""Catalogs in a Hive metastore: entries, the lock, and a table as Hive clients see it."""
