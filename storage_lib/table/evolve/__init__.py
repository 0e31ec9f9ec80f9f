"""Changes of what a table is: its schema, buckets and key, its branches, tags and consumers, its past."""
