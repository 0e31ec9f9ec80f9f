"""From SQL text to a tree of operators."""
