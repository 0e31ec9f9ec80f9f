"""Values that drivers, tasks, snapshots and checkpoints exchange, and the lease that orders writers."""
