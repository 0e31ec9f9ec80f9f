"""Streams: the plan of a streaming write, its sink, its pinned snapshots, and rows as records of a log."""
