"""The text of statements: grammar, positions, and the tables that a query names."""
