"""The cluster benchmark: its driver, the rows that it generates, and processor time of processes."""
