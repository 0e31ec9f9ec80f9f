"""Tests that only ``make deep`` runs, and the sixteen slices in which ``.ci/run`` runs them.

A test belongs to ``make deep`` only if ``make test`` proves the same promise by fewer values: further seeds of a random
test, further combinations of parameters, minutes of kills where one of each kind is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any
from zlib import crc32

import pytest

__all__ = ["SLICES", "crossed", "each_value_once", "is_selected", "slice_of", "thinned"]

SLICES = 16


def slice_of(nodeid: str) -> int:
    """Return the slice of a test, 1 to `SLICES`: the same in every run and on every machine."""
    return crc32(nodeid.encode()) % SLICES + 1


def is_selected(nodeid: str, *, is_deep: bool, deep: bool, chosen: int | None = None, added: int | None = None) -> bool:
    """Return whether a run takes a test.

    ``deep`` runs take all tests, a ``chosen`` slice only its deep ones, others those that are not deep, and the deep
    ones of a slice that is ``added``.
    """
    if chosen is not None:
        return is_deep and slice_of(nodeid) == chosen
    return deep or not is_deep or slice_of(nodeid) == added


def thinned(values: Iterable[Any], keep: int | Callable[[Any], bool] = 1) -> list[Any]:
    """Return parameters of which only the first ``keep``, or those for which ``keep`` returns true, are not deep."""
    return [
        value if (keep(value) if callable(keep) else index < keep) else _deep(value)
        for index, value in enumerate(values)
    ]


def crossed(*axes: Iterable[Any]) -> list[Any]:
    """Return all combinations of the axes' values; one for each value of the longest axis is not deep.

    The other axes take turns along it, so that each value of each axis is in a combination that is not deep.
    """
    values = [list(axis) for axis in axes]
    longest = max(map(len, values))
    kept = {tuple(turn % len(axis) for axis in values) for turn in range(longest)}
    places = product(*(range(len(axis)) for axis in values))
    return [
        pytest.param(
            *(axis[at] for axis, at in zip(values, place, strict=True)),
            marks=() if place in kept else pytest.mark.deep,
        )
        for place in places
    ]


def each_value_once(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Return combinations of parameters; those that contain no value for the first time are deep."""
    seen: set[tuple[int, str]] = set()
    marked = []
    for row in rows:
        values = {(place, repr(value)) for place, value in enumerate(row)}
        marked.append(pytest.param(*row) if values - seen else pytest.param(*row, marks=pytest.mark.deep))
        seen |= values
    return marked


def _deep(value: Any) -> Any:
    if hasattr(value, "values") and hasattr(value, "marks") and hasattr(value, "id"):
        return pytest.param(*value.values, marks=(*value.marks, pytest.mark.deep), id=value.id)
    return pytest.param(value, marks=pytest.mark.deep)
