"""Conversions of types, values, filters, expressions and errors between Spark and this library."""
