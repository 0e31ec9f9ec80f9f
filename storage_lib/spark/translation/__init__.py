"""Conversions of types, filters, expressions and errors between Spark and this library."""
