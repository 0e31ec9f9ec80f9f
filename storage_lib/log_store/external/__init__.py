"""External topics, which other programs write."""
