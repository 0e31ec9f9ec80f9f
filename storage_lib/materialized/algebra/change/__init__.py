"""From a tree of operators to the change of its answer."""
