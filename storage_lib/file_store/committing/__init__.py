"""Preparation of a commit before its snapshot exists: changes, conflicts, metadata, and copies of files."""
