"""Conversion of values that other programs wrote, by the types that their records declare, to a table's types.

A value that does not fit is a refusal of its row; the other rows of a batch are converted.
"""
