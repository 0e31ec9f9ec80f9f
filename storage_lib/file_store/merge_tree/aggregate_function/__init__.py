"""Aggregate functions of columns: all versions of a value to one, for merge functions that merge column by column."""
