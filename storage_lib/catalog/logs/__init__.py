"""Open a table's log in Kafka from its options, and find topics that no table uses."""
