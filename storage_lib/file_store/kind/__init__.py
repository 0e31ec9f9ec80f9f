"""Kinds of tables: how each writes, reads and compacts a bucket, the kind of a schema, and unsupported features."""
