"""Aggregate functions of the model: values of one key, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

COMMUTING: Mapping[str, tuple[str, ...]] = {"n": ("sum", "count"), "x": ("max", "min"), "t": ("last_value",)}
"""Functions by column that also give one answer where a sequence decides on the order."""
ORDERED: Mapping[str, tuple[str, ...]] = {
    **COMMUTING,
    "t": ("last_value", "last_non_null_value", "first_value", "first_non_null_value", "listagg"),
}
RETRACTABLE = ("sum", "count", "last_value", "last_non_null_value")


def first(function: str, value: Any) -> Any:
    """Return what is stored of the first value of a key."""
    return int(value is not None) if function == "count" else value


def combined(function: str, old: Any, new: Any) -> Any:
    """Return what is stored of a further value."""
    if function == "count":
        return old + int(new is not None)
    if function in ("last_value", "first_value"):
        return new if function == "last_value" else old
    if old is None or new is None:
        return new if old is None else old
    return _OF_TWO[function](old, new)


def retracted(function: str, old: Any, gone: Any) -> Any:
    """Return what is stored after a value is taken back."""
    if function == "count":
        return old - int(gone is not None)
    if function == "sum":
        return old if gone is None else (old or 0) - gone
    return old if function == "last_non_null_value" and gone is None else None


_OF_TWO: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": lambda old, new: old + new,
    "max": max,
    "min": min,
    "last_non_null_value": lambda _, new: new,
    "first_non_null_value": lambda old, _: old,
    "listagg": lambda old, new: f"{old},{new}",
}
