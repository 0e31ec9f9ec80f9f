"""Catalogs: tables by name, in a directory tree, a database or a Hive metastore."""
