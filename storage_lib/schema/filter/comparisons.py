"""Conditions on one column: comparisons with a value, prefixes, lists of values, null checks.

Floating point numbers compare as in Spark, and as in Polars and DuckDB: NaN equals NaN and is greater than any other
value, and -0.0 equals 0.0. Arrow's kernels compare NaN as unequal and not greater.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.filter.literal import exact_scalar, typed_literal
from storage_lib.schema.filter.predicate import Predicate, Stats
from storage_lib.schema.table_schema import TableSchema

_INTEGER_MAX = (1 << 63) - 1
_BEYOND_INTEGERS = Decimal(10) ** 20
_HALF = Decimal("0.5")
_COMPARED_MAX = 8
"""Up to this number of values, comparing with each is faster than a look-up."""


@dataclass(frozen=True, slots=True)
class _Comparison(Predicate):
    """``column <operator> value``. A comparison with null is never true; ``validated`` refuses it."""

    column: str
    value: object

    _kernel: ClassVar[str]
    _takes: ClassVar[frozenset[int]]
    """Signs of ``column - value`` for which the comparison is true: -1 if the column is less, 0 if equal."""

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        column = _decoded(batch.column(self.column))
        if _is_nan(self.value):
            nan, other = (pa.scalar(sign in self._takes) for sign in (0, -1))
            return pc.if_else(_nans(column), nan, other)
        found = pc.call_function(self._kernel, [column, _scalar(self.value, column.type)])
        if pa.types.is_floating(column.type) and self._takes_nan is not _IN_ARROW[self._kernel]:
            return pc.or_(found, pc.is_nan(column))
        return found

    @property
    def _takes_nan(self) -> bool:
        """Whether NaN meets the comparison with ``value``, which is another number."""
        return 1 in self._takes

    def validated(self, schema: TableSchema) -> Predicate:
        return type(self)(self.column, typed_literal(self.value, schema.field(self.column)))

    def may_match(self, stats: Stats) -> bool:
        bounds = _bounds(stats, self.column)
        if bounds is None or not bounds.has_values:
            return bounds is None
        if _is_nan(self.value):
            return -1 in self._takes or (0 in self._takes and bounds.may_have_nan)
        return (bounds.may_have_nan and self._takes_nan) or self._within(*bounds.range, matching=True)

    def may_fail(self, stats: Stats) -> bool:
        bounds = _bounds(stats, self.column)
        return (
            bounds is None
            or isinstance(self.value, float)
            or _is_nan(self.value)
            or (bounds.has_values and self._within(*bounds.range, matching=False))
        )

    def _within(self, low: object, high: object, *, matching: bool) -> bool:
        """Whether a value from ``low`` to ``high`` (None: unbounded) can make the comparison ``matching``."""
        raise NotImplementedError


def _le(left: object, right: object) -> bool:
    """Whether ``left <= right`` is possible; True for None (unbounded) and for values that can't be compared."""
    if left is None or right is None:
        return True
    try:
        return bool(left <= right)  # type: ignore[operator]
    except TypeError:
        return True


def _lt(left: object, right: object) -> bool:
    if left is None or right is None:
        return True
    try:
        return bool(left < right)  # type: ignore[operator]
    except TypeError:
        return True


def _all_equal(low: object, high: object, value: object) -> bool:
    return low is not None and low == high == value


class Equal(_Comparison):
    """``column = value``."""

    __slots__ = ()
    _kernel = "equal"
    _takes = frozenset((0,))

    @property
    def names_values(self) -> bool:
        return True

    def _within(self, low: object, high: object, *, matching: bool) -> bool:
        if matching:
            return _le(low, self.value) and _le(self.value, high)
        return not _all_equal(low, high, self.value)


class NotEqual(_Comparison):
    """``column <> value``."""

    __slots__ = ()
    _kernel = "not_equal"
    _takes = frozenset((-1, 1))

    def _within(self, low: object, high: object, *, matching: bool) -> bool:
        if matching:
            return not _all_equal(low, high, self.value)
        return _le(low, self.value) and _le(self.value, high)


class LessThan(_Comparison):
    """``column < value``."""

    __slots__ = ()
    _kernel = "less"
    _takes = frozenset((-1,))

    def _within(self, low: object, high: object, *, matching: bool) -> bool:
        return _lt(low, self.value) if matching else _le(self.value, high)


class LessOrEqual(_Comparison):
    """``column <= value``."""

    __slots__ = ()
    _kernel = "less_equal"
    _takes = frozenset((-1, 0))

    def _within(self, low: object, high: object, *, matching: bool) -> bool:
        return _le(low, self.value) if matching else _lt(self.value, high)


class GreaterThan(_Comparison):
    """``column > value``."""

    __slots__ = ()
    _kernel = "greater"
    _takes = frozenset((1,))

    def _within(self, low: object, high: object, *, matching: bool) -> bool:
        return _lt(self.value, high) if matching else _le(low, self.value)


class GreaterOrEqual(_Comparison):
    """``column >= value``."""

    __slots__ = ()
    _kernel = "greater_equal"
    _takes = frozenset((0, 1))

    def _within(self, low: object, high: object, *, matching: bool) -> bool:
        return _le(self.value, high) if matching else _lt(low, self.value)


MIRRORED: Mapping[Callable[[str, object], Predicate], Callable[[str, object], Predicate]] = {
    Equal: Equal,
    NotEqual: NotEqual,
    LessThan: GreaterThan,
    LessOrEqual: GreaterOrEqual,
    GreaterThan: LessThan,
    GreaterOrEqual: LessOrEqual,
}
"""Comparison to use if the column is on the right: ``5 < column`` is ``column > 5``."""


@dataclass(frozen=True, slots=True)
class StartsWith(Predicate):
    """``column LIKE 'prefix%'``, for text."""

    column: str
    prefix: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        return pc.starts_with(batch.column(self.column), pattern=self.prefix)

    def validated(self, schema: TableSchema) -> Predicate:
        return StartsWith(self.column, str(typed_literal(self.prefix, schema.field(self.column), text_only=True)))

    def may_match(self, stats: Stats) -> bool:
        bounds = _bounds(stats, self.column)
        if bounds is None:
            return True
        low, high = bounds.range
        low_fits = not isinstance(low, str) or low[: len(self.prefix)] <= self.prefix
        high_fits = not isinstance(high, str) or high[: len(self.prefix)] >= self.prefix
        return bounds.has_values and low_fits and high_fits

    def may_fail(self, stats: Stats) -> bool:
        bounds = _bounds(stats, self.column)
        return bounds is None or bounds.has_values


@dataclass(frozen=True, slots=True)
class In(Predicate):
    """``column IN (values)``; false if there are no values."""

    column: str
    values: tuple[object, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    @property
    def names_values(self) -> bool:
        return True

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        column = _decoded(batch.column(self.column))
        # Values that the column can't represent match no row.
        held = [v for v in self.values if not _is_nan(v) and exact_scalar(v, column.type) is not None]
        if 0 < len(held) <= _COMPARED_MAX:
            found = reduce(pc.or_, [pc.equal(column, exact_scalar(value, column.type)) for value in held])
        else:
            if pa.types.is_floating(column.type) and 0.0 in held:
                # Arrow's look-up compares bits, but the two zeros are equal.
                held += [0.0, -0.0]
            found = pc.is_in(column, value_set=pa.array(held, column.type))
            found = pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))
        return pc.or_(found, _nans(column)) if any(map(_is_nan, self.values)) else found

    def validated(self, schema: TableSchema) -> Predicate:
        field = schema.field(self.column)
        return In(self.column, tuple(typed_literal(value, field) for value in self.values))

    def may_match(self, stats: Stats) -> bool:
        bounds = _bounds(stats, self.column)
        if bounds is None:
            return bool(self.values)
        return any(Equal(self.column, value).may_match(stats) for value in self.values)

    def may_fail(self, stats: Stats) -> bool:
        return all(Equal(self.column, value).may_fail(stats) for value in self.values)


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """``column IS NULL``."""

    column: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        return pc.is_null(batch.column(self.column))

    def validated(self, schema: TableSchema) -> Predicate:
        schema.field(self.column)
        return self

    def may_match(self, stats: Stats) -> bool:
        of_column = stats.get(self.column)
        return of_column is None or of_column.null_count != 0

    def may_fail(self, stats: Stats) -> bool:
        bounds = _bounds(stats, self.column)
        return bounds is None or bounds.has_values


@dataclass(frozen=True, slots=True)
class IsNotNull(Predicate):
    """``column IS NOT NULL``."""

    column: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        return pc.is_valid(batch.column(self.column))

    def validated(self, schema: TableSchema) -> Predicate:
        schema.field(self.column)
        return self

    def may_match(self, stats: Stats) -> bool:
        return IsNull(self.column).may_fail(stats)

    def may_fail(self, stats: Stats) -> bool:
        return IsNull(self.column).may_match(stats)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """``may_have_nan``: the column may have NaN, whatever the range is."""

    range: tuple[object, object]
    has_values: bool
    may_have_nan: bool


def _bounds(stats: Stats, column: str) -> _Bounds | None:
    """Return a column's value range, with NaN bounds as unknown; None without statistics."""
    of_column = stats.get(column)
    if of_column is None:
        return None
    low, high = (None if _is_nan(bound) else bound for bound in (of_column.min, of_column.max))
    has_values = of_column.null_count is None or of_column.null_count < of_column.row_count
    is_bounded = low is not None and high is not None
    is_number = is_bounded and not isinstance(low, float)
    return _Bounds((low, high), has_values, not (is_number or (is_bounded and of_column.covers_nan)))


def _is_nan(value: object) -> bool:
    return isinstance(value, float | Decimal) and math.isnan(value)


def _nans(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return which values are NaN, null for null; a column of another type has none."""
    if pa.types.is_floating(column.type):
        return pc.is_nan(column)
    return pc.if_else(pc.is_valid(column), pa.scalar(False), pa.scalar(None, pa.bool_()))


_IN_ARROW: Mapping[str, bool] = {
    "equal": False,
    "not_equal": True,
    "less": False,
    "less_equal": False,
    "greater": False,
    "greater_equal": False,
}
"""Whether Arrow's kernel is true for NaN on the left and another number on the right."""


def _decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return column.cast(column.type.value_type) if isinstance(column.type, pa.DictionaryType) else column


def _scalar(value: object, arrow_type: pa.DataType) -> pa.Scalar:
    """Return the literal in the column's type if it fits exactly, else in its own; Arrow then widens the column."""
    if isinstance(arrow_type, pa.DictionaryType):
        arrow_type = arrow_type.value_type
    exact = exact_scalar(value, arrow_type)
    if exact is not None:
        return exact
    is_number = isinstance(value, int | float | Decimal) and not math.isnan(value)
    return pa.scalar(_beside_integers(value) if is_number and pa.types.is_integer(arrow_type) else value)


def _beside_integers(value: Any) -> int | float | Decimal:
    """Return a number that compares with all 64-bit integers as ``value`` does and that fits an Arrow type."""
    if abs(value) > _INTEGER_MAX:
        return _BEYOND_INTEGERS if value > 0 else -_BEYOND_INTEGERS
    # Arrow would convert the column to floats, which can't represent all integers.
    whole = math.floor(value)
    return whole if value == whole else whole + _HALF
