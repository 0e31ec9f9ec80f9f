"""Kinds of tables: how each writes, reads and compacts a bucket, which kind a schema means, and what is refused."""
