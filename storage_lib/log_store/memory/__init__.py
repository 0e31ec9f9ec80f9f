"""The log in memory: the public twin of the Kafka log for tests, examples and first steps."""
