"""What a commit needs before its snapshot exists: its changes, its conflicts, its metadata, and copies of files."""
