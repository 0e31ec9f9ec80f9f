"""The text of statements: the grammar, places in the text, which tables a query names, and where."""
