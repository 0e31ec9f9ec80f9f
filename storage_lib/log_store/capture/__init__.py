"""Records of other programs, such as Debezium, decoded by the types that the records themselves declare."""
