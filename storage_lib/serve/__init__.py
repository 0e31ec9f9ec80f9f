"""A server of catalogs: engines of Iceberg find the tables' views by its address, and engines of Paimon the tables."""
