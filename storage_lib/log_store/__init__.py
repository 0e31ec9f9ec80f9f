"""The log of a table: its interface here, Kafka and memory in the folders."""
