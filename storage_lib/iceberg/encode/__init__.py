"""Iceberg's metadata format, versions 2 and 3, as bytes and JSON; no I/O (https://iceberg.apache.org/spec/)."""
