"""State of a session: name resolution, settings, temporary tables, results and errors."""
