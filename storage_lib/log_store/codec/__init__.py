"""Codecs between changes and the keys and values of records, whole batches at a time."""
