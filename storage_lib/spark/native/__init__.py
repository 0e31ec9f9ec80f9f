"""Native reads: files whose rows need no merge are read by Spark's own readers, all others by the data source."""
