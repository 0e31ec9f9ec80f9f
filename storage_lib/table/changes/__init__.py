"""Changes as data, computed without files or log: net and multiset changes, complete updates and deletes."""
