"""Public verbs: read, write, read_stream, write_stream, read_changelog."""
