"""A log for readers of Delta Lake (https://github.com/delta-io/delta/blob/master/PROTOCOL.md) over an Iceberg view."""
