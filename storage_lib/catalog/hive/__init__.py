"""Catalogs in a Hive metastore: entries, the lock, and tables as Hive clients see them."""
