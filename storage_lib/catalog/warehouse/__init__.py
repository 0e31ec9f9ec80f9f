"""Catalogs that are a directory tree, in storage or in the memory of this process."""
