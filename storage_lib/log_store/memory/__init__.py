"""The log in memory: the public twin of Kafka's for tests, examples and a first try."""
