"""Versions of Spark: which ones fit, what each lacks, and one form of what differs between them."""
