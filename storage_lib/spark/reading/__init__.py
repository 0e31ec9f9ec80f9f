"""Snapshots as data frames: Spark's own readers where no rows have to be merged, the data source for all others."""
