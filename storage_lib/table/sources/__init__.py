"""External topics of changes that are read into tables: ``ingest``, and the lag of a table."""
