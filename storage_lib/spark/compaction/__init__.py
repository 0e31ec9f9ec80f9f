"""Compaction as a Spark job, on request or alongside a stream."""
