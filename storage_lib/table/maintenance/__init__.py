"""Upkeep: compaction on request or after a commit, dropped partitions, expiry."""
