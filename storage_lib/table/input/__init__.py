"""Input of users as rows and partitions of the table, checked before anything is written."""
