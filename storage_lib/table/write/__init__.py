"""One task's writes: rows to their buckets, into the files, the log, or both."""
