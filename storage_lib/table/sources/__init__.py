"""Foreign topics of changes that are read into tables: ``ingest``, and how far behind a table is."""
