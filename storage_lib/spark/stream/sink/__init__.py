"""Streaming sinks: their specification, checkpoint directory and heartbeat."""
