"""The commit of a refresh: rows, positions of the sources, or both."""
