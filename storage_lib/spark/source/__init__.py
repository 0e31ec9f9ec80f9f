"""``format("dynamic_table")``: Spark's options and schema into readers and writers."""
