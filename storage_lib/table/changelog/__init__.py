"""Changes read back from snapshots, and streams of upserts made complete with the rows they replace."""
