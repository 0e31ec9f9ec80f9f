"""Commits over both stores (appends, overwrites, restores), and the repair of a log that lacks committed changes."""
