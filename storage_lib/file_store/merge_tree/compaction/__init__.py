"""Compaction of one bucket: strategies decide which files, the compactor rewrites them."""
