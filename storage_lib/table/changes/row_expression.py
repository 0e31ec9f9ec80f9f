"""Evaluates Polars expressions for rows that are read batch by batch.

The value for a row must not depend on the other rows of its batch (``pl.col("price").mean()``, ``shift``, ``rank``),
because batches are arbitrary. Polars does not distinguish such expressions, so aggregates are recognised by the
expression's JSON form and others by their values for parts of the batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import polars as pl

_OF_SEVERAL_ROWS = re.compile(
    "Agg|Over|Len|Rolling.*|Ewm.*|Cum.+|Shift.*|Diff|PctChange|Rank|FillNullWithStrategy|Interpolate.*|Reverse|Range|"
    "Unique.*|IsDuplicated|IsUnique|IsFirstDistinct|IsLastDistinct|RLE.*|Random|Quantile|Mode|Skew|Kurtosis|Entropy|"
    "QCut|Peak.*|Arg.*|TopK.*|Hist|Sort.*|Gather.*|Slice|Filter|Explode"
)
_NAME = "value"


def computed_by_row(frame: pl.DataFrame, expression: pl.Expr) -> tuple[bool, pl.Series]:
    """Return whether each row's value depends on this row alone, and the values, one per row if so.

    Raises ``PolarsError`` if the expression cannot be computed.
    """
    whole = _values(frame, expression)
    half = frame.height // 2
    if len(whole) != frame.height or _aggregates(expression):
        return False, whole
    if half == 0:
        return True, whole
    parts = [_values(part, expression) for part in (frame.head(half), frame.tail(frame.height - half))]
    return whole.equals(pl.concat(parts), null_equal=True), whole


def _values(frame: pl.DataFrame, expression: pl.Expr) -> pl.Series:
    values = frame.select(expression.alias(_NAME))[_NAME]
    if len(values) == 1 and frame.height != 1 and not expression.meta.root_names():
        # A literal.
        return pl.repeat(values[0], frame.height, dtype=values.dtype, eager=True)
    return values


def _aggregates(expression: pl.Expr) -> bool:
    try:
        text = expression.meta.serialize(format="json")
    except pl.exceptions.ComputeError:
        # A Python function has no JSON form.
        return False
    return any(_OF_SEVERAL_ROWS.fullmatch(name) for name in _function_names(json.loads(text)))


def _function_names(node: object) -> Iterator[str]:
    """Yield every name in an expression's JSON form except column names and the content of literals."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for each in node:
            yield from _function_names(each)
    elif isinstance(node, dict):
        for name, value in node.items():
            yield name
            if name not in ("Column", "Literal"):
                yield from _function_names(value)
