"""Spark's types, filters, expressions and errors as ours, and ours as Spark's."""
