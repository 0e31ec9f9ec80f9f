"""Hive metastores, which catalogs and Iceberg views use: the thrift interface, a table's lock, types of columns."""
