"""Trees of the grammar -> statements."""
