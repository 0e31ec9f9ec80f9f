"""The log in memory, a public substitute for the Kafka log in tests, examples and first steps."""
