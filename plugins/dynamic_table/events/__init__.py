"""Reports about tables and sinks: metrics, lineage, and the conditions that sensors wait for."""
