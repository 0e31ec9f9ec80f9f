"""The log of a table in Kafka, from the options of the table; and topics that no table uses."""
