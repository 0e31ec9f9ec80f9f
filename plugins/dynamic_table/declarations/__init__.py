"""Files that declare tables and streams."""
