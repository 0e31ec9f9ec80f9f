"""``format("dynamic_table")``: readers and writers from Spark's options and schema."""
