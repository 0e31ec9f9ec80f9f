"""Encodings of values as bytes and text, as in metadata and in other engines."""
