"""Which rows of a bucket stand: versions of keys that are rows of the table, found without their other columns."""
