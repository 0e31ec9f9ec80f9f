"""Planning of reads: live files of a snapshot, pruned by a filter and divided into splits."""
