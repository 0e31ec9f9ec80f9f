"""An Iceberg view of a table: Iceberg metadata over the table's own data files, published after each commit."""
