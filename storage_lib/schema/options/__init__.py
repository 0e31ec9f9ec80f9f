"""Options of tables, columns and catalogs: which exist, how they are spelled, which may change, what is secret."""
