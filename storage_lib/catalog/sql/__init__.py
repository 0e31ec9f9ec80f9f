"""Catalogs in a database, with the tables of Paimon's JDBC catalog: entries and the lock."""
