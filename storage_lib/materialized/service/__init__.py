"""A process that keeps tables fresh: which are stale, in which order they are refreshed, and what it reports."""
