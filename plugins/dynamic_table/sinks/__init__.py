"""Streaming sinks as processes that outlive their tasks, controlled and monitored through files."""
