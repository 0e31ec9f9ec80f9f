"""Compaction of one bucket: strategies choose the files, the compactor rewrites them."""
