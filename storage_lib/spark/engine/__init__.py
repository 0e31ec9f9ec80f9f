"""Spark as the engine of materialized tables."""
