"""Dynamic buckets: choice of the bucket of a new key, and hash indexes that store the bucket of each key."""
