"""Parts of the benchmark of streams."""
