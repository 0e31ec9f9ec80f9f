"""Which files may be deleted: files that a table references, directories that it has claimed, and safe deletion."""
