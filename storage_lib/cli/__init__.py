"""The command line: ``dynamic-table``. Nothing heavy is imported for its help."""
