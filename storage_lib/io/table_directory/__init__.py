"""A table's directory: paths, numbered files, and files that are overwritten in place."""
