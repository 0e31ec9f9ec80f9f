"""State and steps of Spark's Python processes: cached tables, tasks of a write, and the driver's lease for them."""
