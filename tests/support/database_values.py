"""What a column of a table has to hold for a value of a database: the answer to which conversions are compared.

Dates, times and timestamps are whole numbers here, because Python can't hold all of them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, RowType
from tests.support.debezium_values import DAY, EXACT, Modes, Source

REFUSED = object()
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


def table_type_of(source: Source, modes: Modes) -> str:
    if modes.interval == "string":
        return source.table_type.replace("BIGINT", "STRING") if has(source, "interval") else source.table_type
    return source.table_type


def has(source: Source, *kinds: str) -> bool:
    return source.kind in kinds or any(has(each, *kinds) for each in source.parts.values())


def is_told_by_modes(source: Source, modes: Modes) -> bool:
    """Whether a record without a schema can be read: not an object for a decimal, not BIT strings as bytes in text."""
    if has(source, "interval") and has(source, "bigint"):
        return False  # the declared type of an interval in mode string is replaced by its name
    if is_nanos(source, modes):
        return False  # a column has six digits, in which an adaptive connector writes microseconds
    return not (has(source, "any numeric") and modes.decimal == "precise") and not (
        has(source, "bits") and modes.binary != "bytes"
    )


def raw(array: pa.Array) -> list[Any]:
    """Return values with whole numbers for dates, times and timestamps, some of which Python can't hold."""
    return array.cast(as_numbers(array.type)).to_pylist()


def as_numbers(of: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(of):
        return pa.int64() if of.bit_width == pa.int64().bit_width else pa.int32()
    if pa.types.is_map(of):
        return pa.map_(of.key_type, as_numbers(of.item_type))
    if pa.types.is_list(of):
        return pa.list_(pa.field("element", as_numbers(of.value_type)))
    if pa.types.is_struct(of):
        return pa.struct([pa.field(each.name, as_numbers(each.type)) for each in of])
    return of


def expected(source: Source, value: Any, modes: Modes, options: dict[str, str], of: DataType) -> Any:
    """Return what a column of this type has to hold for a value of the database, or ``REFUSED``."""
    match source.kind, of:
        case "array", ArrayType():
            inside = [part(source.parts["element"], each, modes, options, of.element) for each in value]
            return REFUSED if any(each is REFUSED for each in inside) else inside
        case "hstore", MapType():
            return list(value.items())
        case "row", RowType():
            fields = {
                each.name: part(source.parts[each.name], value[each.name], modes, options, each.type)
                for each in of.fields
            }
            return REFUSED if any(each is REFUSED for each in fields.values()) else fields
    return scalar(source, value, modes, options, of)


def is_nanos(source: Source, modes: Modes) -> bool:
    """Whether a timestamp has more digits than its column can have, and the connector writes them."""
    own = source.kind == "timestamp" and source.precision > 6 and modes.time.startswith("adaptive")
    return own or any(is_nanos(each, modes) for each in source.parts.values())


def part(source: Source, value: Any, modes: Modes, options: dict[str, str], of: DataType) -> Any:
    return None if value is None else expected(source, value, modes, options, of)


def scalar(  # noqa: PLR0911  one per kind of type
    source: Source, value: Any, modes: Modes, options: dict[str, str], of: DataType
) -> Any:
    match source.kind:
        case "numeric" | "any numeric":
            return decimal(value, modes, of)
        case "date":
            return ranged(value, -719_162, 2_932_896, options)
        case "time":
            written = modes.nanos("time", source.precision)
            return moment(value // written * written, 0, DAY - 1, options, of)
        case "timestamp" | "timestamptz":
            written = modes.nanos("timestamp", source.precision) if source.kind == "timestamp" else 1
            low, high = -62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1
            if of.arrow.unit == "ns":
                low, high = -9_223_372_035 * 10**9, 9_223_372_036 * 10**9 - 1
            return moment(value // written * written, low, high, options, of)
        case "bits":
            return value.to_bytes((source.precision + 7) // 8, "little").rstrip(b"\0")
    if of.root is TypeRoot.VARCHAR:
        return str(source.form(modes).json(value))
    return value


def decimal(value: Decimal, modes: Modes, of: DataType) -> Any:
    if modes.decimal == "double":
        if of.root is TypeRoot.DOUBLE:
            return float(value)
        value = Decimal(repr(float(value)))
    if of.root is TypeRoot.VARCHAR:
        return format(value, "f")
    scale = of.scale or 0
    unscaled = value.scaleb(scale, EXACT)
    if unscaled != unscaled.to_integral_value(context=EXACT) or unscaled.copy_abs() >= 10 ** (of.precision or 0):
        return REFUSED
    return Decimal(int(unscaled)).scaleb(-scale, EXACT)


def ranged(value: int, low: int, high: int, options: dict[str, str]) -> Any:
    if low <= value <= high:
        return value
    return {"reject": REFUSED, "null": None, "clamp": min(max(value, low), high)}[options["source.out-of-range"]]


def moment(nanos: int, low: int, high: int, options: dict[str, str], of: DataType) -> Any:
    step = 10**9 // PER_SECOND[of.arrow.unit]
    if not low <= nanos <= high:
        far = ranged(nanos, low, high, options)
        return far if far is REFUSED or far is None else far // step
    if nanos % step == 0:
        return nanos // step
    how = options["source.time-precision"]
    if how == "reject" or (how == "auto" and of.root is not TypeRoot.TIME and of.arrow.unit == "ms"):
        return REFUSED
    rounded = (nanos + step // 2) // step if how == "round" else nanos // step
    return min(rounded, high // step)
