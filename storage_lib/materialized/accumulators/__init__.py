"""Accumulators of sums and counts: the table that stores their state, and its statements."""
