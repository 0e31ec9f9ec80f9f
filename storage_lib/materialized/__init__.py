"""Materialized tables: what is independent of the engine that computes their answers."""
