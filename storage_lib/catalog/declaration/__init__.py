"""What CREATE TABLE declares: options checked, completed and frozen, and drift of a table from its declaration."""
