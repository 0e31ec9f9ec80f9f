"""Values that Polars computes for rows that come batch by batch.

What an expression makes of a row must not depend on the other rows of its batch (``pl.col("price").mean()``,
``shift``, ``rank``): which rows these are is chance. Polars does not tell such expressions apart, so aggregates are
recognised by the expression's JSON form and the others by their values for parts of the batch.
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
    """Whether each row's value depends on this row alone; and the values, one per row if so.

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
        # A function of Python's has no such form.
        return False
    return any(_OF_SEVERAL_ROWS.fullmatch(name) for name in _function_names(json.loads(text)))


def _function_names(node: object) -> Iterator[str]:
    """Every name in an expression's JSON form but those of columns and what is in literals."""
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
