"""Queries that every format answers, as Spark SQL; ``{table}`` stands for the table, ``{key}`` for a key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

FILTER_ABOVE = 0.999
QUERIES = {
    "scan": "SELECT sum(id), max(dt), sum(length(name)), sum(amount), sum(score), max(ts) FROM {table}",
    "filter": f"SELECT count(*), sum(id), max(name) FROM {{table}} WHERE score > {FILTER_ABOVE}D",  # noqa: S608
    "sum of one column": "SELECT sum(amount) FROM {table}",
    "count(*)": "SELECT count(*) FROM {table}",
}
LOOK_UP = "SELECT id, name, amount FROM {{table}} WHERE id = {key}"


def same_rows(left: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> bool:
    """Return whether two answers are equal, apart from rounding: the order of a sum of doubles is not fixed."""
    return len(left) == len(right) and all(
        len(one) == len(other) and all(map(_same_value, one, other)) for one, other in zip(left, right, strict=True)
    )


def _same_value(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9)
    return left == right
