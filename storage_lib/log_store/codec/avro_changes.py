"""Convert columns to and from Avro log values with the types of Debezium's Avro converter (docs/format.md, log record).

    BOOLEAN, TINYINT .. INT, BIGINT     boolean, int (connect.type int8, int16), long
    FLOAT, DOUBLE, strings, bytes       float, double, string, bytes
    DECIMAL(p, s)                       bytes of the unscaled value    org.apache.kafka.connect.data.Decimal, decimal
    DATE                                int: days                      io.debezium.time.Date
    TIME(p)                             int: ms, or long: microseconds io.debezium.time.Time, MicroTime
    TIMESTAMP(p)                        long: ms, us or ns             io.debezium.time.Timestamp, Micro.., Nano..
    TIMESTAMP_LTZ(p)                    string: ISO-8601 in UTC        io.debezium.time.ZonedTimestamp
    ARRAY, ROW, MAP                     array, record, map; a map whose keys are not strings: array of entries

A nullable type is a union with null, null by default. On reading, the writer's schema determines the unit; logical
types of Connect and of Avro, as other converters write them, are read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.codec.debezium_columns import to_json_column
from storage_lib.schema.encoding.decimal_bytes import decimals_of_bytes, unscaled_bytes
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.exact_decimals import as_decimals
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, null_mask, struct_child, struct_of
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType, is_nested

if TYPE_CHECKING:
    from storage_lib.format.avro_types import AvroSchema

_MILLIS_DIGITS, _MICROS_DIGITS = 3, 6
_PLAIN: Mapping[TypeRoot, str | Mapping[str, Any]] = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: {"type": "int", "connect.type": "int8"},
    TypeRoot.SMALLINT: {"type": "int", "connect.type": "int16"},
    TypeRoot.INTEGER: "int",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.CHAR: "string",
    TypeRoot.VARCHAR: "string",
    TypeRoot.BINARY: "bytes",
    TypeRoot.VARBINARY: "bytes",
}
_STRINGS = (TypeRoot.CHAR, TypeRoot.VARCHAR)
_TIMES: Mapping[str, pa.DataType] = {
    "io.debezium.time.Date": pa.date32(),
    "io.debezium.time.Time": pa.time32("ms"),
    "io.debezium.time.MicroTime": pa.time64("us"),
    "io.debezium.time.NanoTime": pa.time64("ns"),
    "io.debezium.time.Timestamp": pa.timestamp("ms"),
    "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
    "io.debezium.time.NanoTimestamp": pa.timestamp("ns"),
    "org.apache.kafka.connect.data.Date": pa.date32(),
    "org.apache.kafka.connect.data.Time": pa.time32("ms"),
    "org.apache.kafka.connect.data.Timestamp": pa.timestamp("ms"),
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


def record_of(name: str, fields: Sequence[DataField]) -> dict[str, Any]:
    """Return the Avro record schema of these columns."""
    return {"type": "record", "name": name, "fields": [_field(each, f"{name}_{each.name}") for each in fields]}


def to_avro_column(column: pa.Array, of: DataType, name: str) -> pa.Array:  # noqa: PLR0911  one per kind of type
    """Convert values to the Arrow types that ``encoded_records`` takes. Raises as ``to_json_column`` does."""
    match of:
        case ArrayType():
            lists = list_parts(column)
            elements = to_avro_column(lists.values, of.element, f"{name}.element")
            return lists.with_values(elements, pa.list_(elements.type))
        case MapType() | MultisetType():
            key, value = _entry_types(of)
            maps = map_parts(column)
            keys = to_avro_column(maps.keys, key, f"{name}.key")
            values = to_avro_column(maps.values, value, f"{name}.value")
            if key.root in _STRINGS:
                return maps.with_entries(keys, values, pa.map_(keys.type, values.type))
            entry = pa.struct([("key", keys.type), ("value", values.type)])
            entries = struct_of([keys, values], entry, None, len(keys))
            mask = None if maps.nulls is None else pa.array(maps.nulls)
            return pa.ListArray.from_arrays(pa.array(maps.offsets), entries, mask=mask)
        case RowType():
            children = [to_avro_column(struct_child(column, each.name), each.type, each.name) for each in of.fields]
            inside = [(each.name, child.type) for each, child in zip(of.fields, children, strict=True)]
            return struct_of(children, pa.struct(inside), null_mask(column), len(column))
        case _ if of.root is TypeRoot.DECIMAL:
            return unscaled_bytes(column)
        case _ if pa.types.is_binary(column.type):
            return column
        case _:
            return to_json_column(column, DataField(id=-1, name=name, type=of))


def from_avro_column(column: pa.Array, written: AvroSchema, of: DataType, name: str) -> pa.Array:
    """Convert values read by ``AvroCursor`` to a column. Raises ``ValueError`` if they are not of its type."""
    kind, spec = _kind(written)
    match of:
        case ArrayType() if kind == "array":
            lists = list_parts(column)
            return lists.with_values(from_avro_column(lists.values, spec["items"], of.element, name), of.arrow)
        case MapType() | MultisetType() if kind == "map":
            key, value = _entry_types(of)
            maps = map_parts(column)
            keys = from_avro_column(maps.keys, "string", key, name)
            return maps.with_entries(keys, from_avro_column(maps.values, spec["values"], value, name), of.arrow)
        case MapType() | MultisetType() if kind == "array" and _kind(spec["items"])[0] == "record":
            key, value = _entry_types(of)
            lists = list_parts(column)
            types = {each["name"]: each["type"] for each in _kind(spec["items"])[1]["fields"]}
            keys = from_avro_column(struct_child(lists.values, "key"), types["key"], key, name)
            values = from_avro_column(struct_child(lists.values, "value"), types["value"], value, name)
            mask = None if lists.nulls is None else pa.array(lists.nulls)
            return pa.MapArray.from_arrays(pa.array(lists.offsets), keys, values, mask=mask).cast(of.arrow)
        case RowType() if kind == "record":
            types = {each["name"]: each["type"] for each in spec["fields"]}
            children = [
                from_avro_column(struct_child(column, each.name), types[each.name], each.type, f"{name}.{each.name}")
                if each.name in types
                else pa.nulls(len(column), each.type.arrow)
                for each in of.fields
            ]
            return struct_of(children, of.arrow, null_mask(column), len(column))
        case _ if is_nested(of) or kind in ("array", "map", "record"):
            message = f"column {name!r} is {of}, but the writer's schema has a value of type {kind}"
            raise ValueError(message)
        case _:
            return _fitted(_typed(column, spec), of, name)


def _typed(column: pa.Array, spec: Mapping[str, Any]) -> pa.Array:
    """Convert plain values to the type that the writer's schema declares."""
    meaning, logical = spec.get("connect.name"), spec.get("logicalType")
    if logical == "decimal" or meaning == "org.apache.kafka.connect.data.Decimal":
        parameters = spec.get("connect.parameters", {})
        scale = int(spec.get("scale", parameters.get("scale", 0)))
        precision = int(spec.get("precision", parameters.get("connect.decimal.precision", 38)))
        return decimals_of_bytes(column, pa.decimal128(max(precision, scale, 1), scale))
    target = _TIMES.get(meaning or "") or _TIMES.get(logical or "")
    if target is None:
        return column
    return column.cast(pa.int32() if target.bit_width == pa.int32().bit_width else pa.int64()).cast(target)


def _fitted(column: pa.Array, of: DataType, name: str) -> pa.Array:
    arrow = of.arrow
    try:
        if pa.types.is_time(column.type) and column.type != arrow:
            column = column.cast(pa.time64("ns"))
        elif pa.types.is_time(arrow) and pa.types.is_integer(column.type):
            per_milli = 1 if (of.precision or 0) <= _MILLIS_DIGITS else 1000
            column = pc.divide(column, per_milli).cast(pa.int32())
        if column.type == arrow:
            return column
        return as_decimals(column, arrow) if pa.types.is_decimal(arrow) else column.cast(arrow)
    except pa.ArrowException as error:
        message = f"column {name!r} is {of}, and not every value ({column.type}) fits: {error}"
        raise ValueError(message) from error


def _field(field: DataField, name: str) -> dict[str, Any]:
    of = _avro_of(field.type, name)
    if field.type.nullable:
        return {"name": field.name, "type": ["null", of], "default": None}
    return {"name": field.name, "type": of}


def _or_null(of: DataType, name: str) -> AvroSchema:
    return ["null", _avro_of(of, name)] if of.nullable else _avro_of(of, name)


def _avro_of(of: DataType, name: str) -> AvroSchema:  # noqa: PLR0911  one per kind of type
    match of:
        case ArrayType():
            return {"type": "array", "items": _or_null(of.element, f"{name}_element")}
        case MapType() | MultisetType():
            key, value = _entry_types(of)
            if key.root in _STRINGS:
                return {"type": "map", "values": _or_null(value, f"{name}_value")}
            entry = [
                {"name": "key", "type": _avro_of(key, f"{name}_key")},
                {"name": "value", "type": _or_null(value, f"{name}_value")},
            ]
            return {"type": "array", "items": {"type": "record", "name": name, "fields": entry}}
        case RowType():
            return record_of(name, of.fields)
    precision = of.precision or 0
    match of.root:
        case TypeRoot.DECIMAL:
            parameters = {"scale": str(of.scale or 0), "connect.decimal.precision": str(of.precision)}
            digits = {"precision": of.precision, "scale": of.scale or 0, "connect.parameters": parameters}
            return {**_named("bytes", "org.apache.kafka.connect.data.Decimal"), **digits, "logicalType": "decimal"}
        case TypeRoot.DATE:
            return _named("int", "io.debezium.time.Date")
        case TypeRoot.TIME:
            is_millis = precision <= _MILLIS_DIGITS
            return _named(*(("int", "io.debezium.time.Time") if is_millis else ("long", "io.debezium.time.MicroTime")))
        case TypeRoot.TIMESTAMP:
            unit = "" if precision <= _MILLIS_DIGITS else "Micro" if precision <= _MICROS_DIGITS else "Nano"
            return _named("long", f"io.debezium.time.{unit}Timestamp")
        case TypeRoot.TIMESTAMP_LTZ:
            return _named("string", "io.debezium.time.ZonedTimestamp")
        case _:
            return _PLAIN[of.root]


def _named(kind: str, meaning: str) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": meaning}


def _entry_types(of: MapType | MultisetType) -> tuple[DataType, DataType]:
    if isinstance(of, MapType):
        return of.key, of.value
    return of.element, DataType(TypeRoot.INTEGER, nullable=False)


def _kind(of: AvroSchema) -> tuple[str, Mapping[str, Any]]:
    if isinstance(of, str):
        return of, {}
    if isinstance(of, Sequence):
        others = [each for each in of if each != "null"]
        return _kind(others[0]) if others else ("null", {})
    return str(of["type"]), of
