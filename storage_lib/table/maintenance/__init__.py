"""Maintenance: compaction on request or after a commit, dropping partitions, expiry."""
