"""Catalogs stored as a directory tree, in storage or in this process's memory."""
