"""TPC-H: its tables, queries and data, and tables of this library whose rows have to be merged."""
