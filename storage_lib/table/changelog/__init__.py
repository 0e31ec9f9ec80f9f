"""Changes read back from snapshots, and streams of upserts completed with the rows that they replace."""
