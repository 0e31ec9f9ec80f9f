"""Columns, options, keys and filters of a table, as values without I/O."""
