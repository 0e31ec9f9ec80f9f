"""Which rows of a data file an Iceberg reader must not see; independent of how Iceberg's metadata is encoded."""
