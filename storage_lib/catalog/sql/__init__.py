"""Catalogs in a database, with the database tables of Paimon's JDBC catalog: entries and the lock."""
