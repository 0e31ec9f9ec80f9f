"""Stream reads and writes behind Spark's Python data source API, our files in a checkpoint, and background threads."""
