"""Manifests: the lists of data files and index files that a snapshot names."""
