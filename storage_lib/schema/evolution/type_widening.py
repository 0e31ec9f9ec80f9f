"""Allowed type changes: the new type must hold every old value exactly, because older files are cast to it.

TINYINT -> SMALLINT -> INT -> BIGINT; TINYINT, SMALLINT -> FLOAT -> DOUBLE; INT -> DOUBLE
integers -> DECIMAL with as many digits before the point
DECIMAL -> DECIMAL with no fewer digits before and after the point
CHAR(n), VARCHAR(n) -> VARCHAR(m), STRING; BINARY(n), VARBINARY(n) -> VARBINARY(m), BYTES; m >= n
TIME(p), TIMESTAMP(p), TIMESTAMP_LTZ(p) -> the same with more digits
"""

from __future__ import annotations

from storage_lib.schema.types.data_types import LENGTH_MAX, DataType, TypeRoot

_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INTEGER: 10, TypeRoot.BIGINT: 19}
_INTEGERS = tuple(_DIGITS)
_WIDER_NUMBERS = {
    TypeRoot.TINYINT: {*_INTEGERS[1:], TypeRoot.FLOAT, TypeRoot.DOUBLE},
    TypeRoot.SMALLINT: {*_INTEGERS[2:], TypeRoot.FLOAT, TypeRoot.DOUBLE},
    TypeRoot.INTEGER: {TypeRoot.BIGINT, TypeRoot.DOUBLE},
    TypeRoot.FLOAT: {TypeRoot.DOUBLE},
}
_LONGER = {
    TypeRoot.CHAR: TypeRoot.VARCHAR,
    TypeRoot.VARCHAR: TypeRoot.VARCHAR,
    TypeRoot.BINARY: TypeRoot.VARBINARY,
    TypeRoot.VARBINARY: TypeRoot.VARBINARY,
}
_WITH_DIGITS = (TypeRoot.TIME, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


def holds_every_value(wide: DataType, narrow: DataType) -> bool:
    """Whether ``wide`` can represent every value of ``narrow``, ignoring nullability."""
    if wide.not_null() == narrow.not_null():
        return True
    if wide.root in _WIDER_NUMBERS.get(narrow.root, ()):
        return True
    if wide.root is TypeRoot.DECIMAL:
        before, after = _decimal_digits(narrow)
        wide_before, wide_after = _decimal_digits(wide)
        return 0 < before <= wide_before and after <= wide_after
    if _LONGER.get(narrow.root) is wide.root:
        return (wide.length or LENGTH_MAX) >= (narrow.length or LENGTH_MAX)
    return wide.root is narrow.root and wide.root in _WITH_DIGITS and (wide.precision or 0) >= (narrow.precision or 0)


def _decimal_digits(of: DataType) -> tuple[int, int]:
    """Return the digits before and after the point; (0, 0) for types other than exact numbers."""
    if of.root is TypeRoot.DECIMAL:
        return max(1, (of.precision or 0) - (of.scale or 0)), of.scale or 0
    return _DIGITS.get(of.root, 0), 0
