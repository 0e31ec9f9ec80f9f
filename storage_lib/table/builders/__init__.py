"""The protocol between a table and an engine: a read or a write that is planned on a driver and run in tasks."""
