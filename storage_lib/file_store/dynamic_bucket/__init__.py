"""Dynamic buckets: which bucket a new key gets, and the hash indexes that store the bucket of each key."""
