"""Aggregates that are kept by accumulators: sums and counts by group, to which changes are added."""
