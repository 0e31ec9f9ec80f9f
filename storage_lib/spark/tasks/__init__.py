"""Code of Spark's Python processes: tasks, open tables, the lease that the driver holds for them."""
