"""One table: reads and writes over its file store and its log, and the commits that keep the two equal."""
