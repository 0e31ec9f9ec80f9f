"""Build predicates in Python: ``col("x") > 3``, ``col("x").isin([1, 2])``."""

from __future__ import annotations

from storage_lib.schema.filter.comparisons import (
    Equal,
    GreaterOrEqual,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessOrEqual,
    LessThan,
    NotEqual,
    StartsWith,
)
from storage_lib.schema.filter.predicate import And, Predicate


class Column:
    """Column reference whose operators build predicates: ``col("x") > 3``, ``col("x").isin([1, 2])``."""

    __hash__ = None  # type: ignore[assignment]  # == builds a predicate, so a column can't be a key

    def __init__(self, name: str) -> None:
        self._name = name

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        """``column = value``."""
        return Equal(self._name, value)

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        """``column <> value``."""
        return NotEqual(self._name, value)

    def __lt__(self, value: object) -> Predicate:
        """``column < value``."""
        return LessThan(self._name, value)

    def __le__(self, value: object) -> Predicate:
        """``column <= value``."""
        return LessOrEqual(self._name, value)

    def __gt__(self, value: object) -> Predicate:
        """``column > value``."""
        return GreaterThan(self._name, value)

    def __ge__(self, value: object) -> Predicate:
        """``column >= value``."""
        return GreaterOrEqual(self._name, value)

    def isin(self, values: list[object] | tuple[object, ...]) -> Predicate:
        """``column IN (values)``."""
        return In(self._name, tuple(values))

    def is_null(self) -> Predicate:
        """``column IS NULL``."""
        return IsNull(self._name)

    def is_not_null(self) -> Predicate:
        """``column IS NOT NULL``."""
        return IsNotNull(self._name)

    def startswith(self, prefix: str) -> Predicate:
        """``column LIKE 'prefix%'``."""
        return StartsWith(self._name, prefix)

    def between(self, low: object, high: object) -> Predicate:
        """``column BETWEEN low AND high``, both inclusive."""
        return And(GreaterOrEqual(self._name, low), LessOrEqual(self._name, high))


def col(name: str) -> Column:
    """Return a reference to the column ``name``, to build a predicate from."""
    return Column(name)
