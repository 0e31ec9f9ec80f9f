"""External topics: topics that other programs write."""
