"""What records say of themselves beside their rows: where and when they were written, by Kafka and by the source."""
