"""Changes of a table's schema, layout and history: alter, rewrite, rollback, branches, tags and consumers."""
