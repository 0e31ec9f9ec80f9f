"""What records say apart from their rows: where and when they were written, by Kafka and by the source."""
