"""The directory of a table: every name in it, files numbered in order, and files that are overwritten in place."""
