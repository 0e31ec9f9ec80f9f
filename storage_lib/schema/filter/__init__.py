"""Predicates, and the statistics that they are tested against."""
