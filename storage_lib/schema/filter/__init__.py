"""Predicates and the statistics on which they are tested."""
