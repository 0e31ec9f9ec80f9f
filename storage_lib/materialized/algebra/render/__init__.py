"""From a tree of operators to SQL text."""
