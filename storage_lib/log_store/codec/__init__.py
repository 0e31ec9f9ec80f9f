"""Codecs that convert batches of changes to the keys and values of log records and back."""
