"""Writes of one task: routes rows to their buckets and writes them to the files, the log, or both."""
