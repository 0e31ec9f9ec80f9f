"""What a table's columns, options, keys and filters mean: values, without files."""
