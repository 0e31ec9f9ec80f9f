"""``format("dynamic_table")``: readers and writers behind Spark's Python data source API, batch and stream."""
