"""What the benchmark of streams is made of."""
