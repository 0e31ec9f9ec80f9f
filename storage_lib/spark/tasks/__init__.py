"""Code that runs in Spark's Python processes: tasks, cached tables, and the driver's lease for them."""
