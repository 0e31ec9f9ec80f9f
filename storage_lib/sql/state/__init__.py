"""State of a session and its results: names, settings, temporary tables, rows, errors."""
