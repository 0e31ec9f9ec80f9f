"""Types that columns have to have for what a source writes after its schema has changed.

A column is widened to hold every written value along with the stored ones:

    integers, FLOAT          a wider one; DOUBLE for a pair of them that neither holds
    integers, DECIMAL        the DECIMAL with the digits of both, before and after the point
    CHAR, VARCHAR, BINARY    a longer one
    TIME, TIMESTAMP          more digits
"""

from __future__ import annotations

from collections.abc import Callable

from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_value_type import ValueType
from storage_lib.log_store.conversion.captured_values import is_convertible
from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.schema.evolution.type_widening import holds_every_value
from storage_lib.schema.types.data_types import DECIMAL_PRECISION_MAX, DataType, TypeRoot

_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INTEGER: 10, TypeRoot.BIGINT: 19}


def widened(stored: DataType, written: ValueType, modes: CaptureModes) -> DataType | None:
    """Return the type that a column of type ``stored`` has to have for the written values.

    ``stored`` itself if it holds them, or if it can't be widened but takes those values that fit, as a DECIMAL takes
    text of numbers; None if no value is one of the column.
    """
    new = table_type(written).with_nullable(stored.nullable)
    if holds_every_value(stored, new):
        return stored
    if holds_every_value(new, stored):
        return new
    wide = next((found for build in _UNIONS if (found := build(stored, new)) is not None), None)
    if wide is not None:
        return wide
    return stored if is_convertible(written, stored, modes) else None


def _decimal_union(stored: DataType, new: DataType) -> DataType | None:
    if TypeRoot.DECIMAL not in (stored.root, new.root) or not {stored.root, new.root} <= {TypeRoot.DECIMAL, *_DIGITS}:
        return None
    scale = max(stored.scale or 0, new.scale or 0)
    precision = scale + max(_whole_digits(stored), _whole_digits(new))
    if precision > DECIMAL_PRECISION_MAX:
        return None
    return DataType(TypeRoot.DECIMAL, stored.nullable, precision=precision, scale=scale)


def _double_union(stored: DataType, new: DataType) -> DataType | None:
    double = DataType(TypeRoot.DOUBLE, stored.nullable)
    is_number = {stored.root, new.root} <= {*_DIGITS, TypeRoot.FLOAT}
    return double if is_number and holds_every_value(double, stored) and holds_every_value(double, new) else None


_UNIONS: tuple[Callable[[DataType, DataType], DataType | None], ...] = (_decimal_union, _double_union)


def _whole_digits(of: DataType) -> int:
    return _DIGITS.get(of.root, (of.precision or 0) - (of.scale or 0))
