"""Facts of a tree of operators: columns that are read, keys, how each operator is maintained."""
