"""Commands for the sources of tables: follow them, compare with them, and see what was rejected."""
