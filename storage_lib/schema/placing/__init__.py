"""Where a row belongs: its partition, its bucket, and the layout of files and log by both."""
