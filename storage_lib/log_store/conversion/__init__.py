"""Conversions of whole columns to a table's types that name the rows which do not fit, instead of failing."""
