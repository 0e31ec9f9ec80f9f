"""Iceberg's metadata format, version 3, as bytes and JSON; no I/O (https://iceberg.apache.org/spec/)."""
