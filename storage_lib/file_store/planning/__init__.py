"""Which files of a snapshot a read concerns: live files, pruned by a filter, shared out in a plan."""
