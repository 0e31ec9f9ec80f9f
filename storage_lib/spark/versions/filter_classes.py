"""Spark's classes of filters on rows; before Spark 4.1, which pushes none into Python, classes of the same names.

There our own reads still make them of a query's conditions, to leave out files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.spark.versions.spark_feature import installed_since

__all__ = [
    "EqualNullSafe",
    "EqualTo",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNotNull",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "StringContains",
    "StringEndsWith",
    "StringStartsWith",
]

if TYPE_CHECKING or installed_since(4, 1):
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        IsNull,
        LessThan,
        LessThanOrEqual,
        Not,
        StringContains,
        StringEndsWith,
        StringStartsWith,
    )
else:
    from dataclasses import dataclass
    from typing import Any

    class Filter:
        """A condition on the rows of a query."""

    @dataclass(frozen=True)
    class _OnColumn(Filter):
        attribute: tuple[str, ...]

    @dataclass(frozen=True)
    class _WithValue(_OnColumn):
        value: Any

    @dataclass(frozen=True)
    class Not(Filter):
        """The opposite of another condition."""

        child: Filter

    class EqualNullSafe(_WithValue):
        """Equal, or both null."""

    class EqualTo(_WithValue):
        """Equal."""

    class GreaterThan(_WithValue):
        """Greater."""

    class GreaterThanOrEqual(_WithValue):
        """Greater or equal."""

    class In(_WithValue):
        """Equal to one of several values."""

    class IsNotNull(_OnColumn):
        """Not null."""

    class IsNull(_OnColumn):
        """Null."""

    class LessThan(_WithValue):
        """Less."""

    class LessThanOrEqual(_WithValue):
        """Less or equal."""

    class StringContains(_WithValue):
        """A text with another one in it."""

    class StringEndsWith(_WithValue):
        """A text that ends with another one."""

    class StringStartsWith(_WithValue):
        """A text that starts with another one."""
