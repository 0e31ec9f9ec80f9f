"""Data frames as commits: rows are computed and distributed by bucket, then written as one Spark job."""
