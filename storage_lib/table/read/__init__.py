"""Batch reads of one snapshot: which one, which of its files, and the rows of single keys."""
