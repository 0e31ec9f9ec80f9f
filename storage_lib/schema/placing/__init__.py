"""Placement of rows: partitions, buckets, and the layout of files and log."""
