"""Conversion of Arrow types to Avro's, and of arrays to and from the types that fastavro supports.

    TINYINT, SMALLINT, INT, DATE, TIME     int           BIGINT, TIMESTAMP    long (milli- or microseconds)
    DECIMAL                                bytes: the unscaled value, big-endian two's complement
    ARRAY, ROW                             array, record
    MAP, MULTISET                          map if keys are text, else an array of records (key, value)

A nullable type is a union of null and the type. Logical types are in the schema for other readers; values are encoded
as plain numbers. A TIMESTAMP is a ``timestamp-*``, a TIMESTAMP_LTZ a ``local-timestamp-*``: the names
look swapped, but that is what Paimon writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import pyarrow as pa

from storage_lib.schema.encoding.decimal_bytes import decimals_of_bytes, unscaled_bytes
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, null_mask, struct_child, struct_of

AvroSchema: TypeAlias = str | Mapping[str, Any] | Sequence[Any]

_RECORD_NAME = "org.apache.paimon.avro.generated.record"
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
}
_ARROW_OF_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_TIMES = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-micros": pa.timestamp("us", "UTC"),
}
_DIGITS = {"ms": "millis", "us": "micros"}


def avro_schema_of(schema: pa.Schema) -> Mapping[str, Any]:
    """Return the record schema of a row."""
    return _record(_RECORD_NAME, list(schema))


def stored(array: pa.Array) -> pa.Array:  # noqa: PLR0911  one per kind of type
    """Convert values to types that fastavro accepts directly."""
    type_ = array.type
    if pa.types.is_decimal(type_):
        return unscaled_bytes(array)
    if pa.types.is_date(type_) or pa.types.is_time(type_):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(type_):
        return array.cast(pa.int64())
    if pa.types.is_list(type_):
        lists = list_parts(array)
        elements = stored(lists.values)
        return lists.with_values(elements, pa.list_(elements.type))
    if pa.types.is_map(type_):
        maps = map_parts(array)
        keys, values = stored(maps.keys), stored(maps.values)
        if pa.types.is_string(type_.key_type):
            return maps.with_entries(keys, values, pa.map_(keys.type, values.type))
        entry = pa.struct([("key", keys.type), ("value", values.type)])
        entries = struct_of([keys, values], entry, None, len(keys))
        return pa.ListArray.from_arrays(
            pa.array(maps.offsets), entries, mask=None if maps.nulls is None else pa.array(maps.nulls)
        )
    if pa.types.is_struct(type_):
        children = [stored(struct_child(array, type_.field(index).name)) for index in range(type_.num_fields)]
        fields = [pa.field(type_.field(index).name, child.type) for index, child in enumerate(children)]
        return struct_of(children, pa.struct(fields), null_mask(array), len(array))
    return array


def stored_type(of: AvroSchema) -> pa.DataType:
    """Return the Arrow type of fastavro's values of an Avro type, with logical types as numbers."""
    kind, spec = _of_union(of)
    if kind == "array":
        return pa.list_(stored_type(spec["items"]))
    if kind == "map":
        return pa.map_(pa.string(), stored_type(spec["values"]))
    if kind == "record":
        return pa.struct([(each["name"], stored_type(each["type"])) for each in spec["fields"]])
    return _ARROW_OF_PLAIN[kind]


def restored(array: pa.Array, of: AvroSchema) -> pa.Array:  # noqa: PLR0911  one per kind of type
    """Convert an array of stored values back to the types of the Avro schema; inverse of ``stored``."""
    kind, spec = _of_union(of)
    logical = spec.get("logicalType")
    if logical == "decimal":
        return decimals_of_bytes(array, pa.decimal128(int(spec["precision"]), int(spec.get("scale", 0))))
    if logical in _TIMES:
        return array.cast(_TIMES[logical])
    if kind == "array":
        lists = list_parts(array)
        elements = restored(lists.values, spec["items"])
        if _is_entry(spec["items"]) and elements.null_count == 0:
            keys, values = struct_child(elements, "key"), struct_child(elements, "value")
            return pa.MapArray.from_arrays(
                pa.array(lists.offsets), keys, values, mask=None if lists.nulls is None else pa.array(lists.nulls)
            )
        return lists.with_values(elements, pa.list_(elements.type))
    if kind == "map":
        maps = map_parts(array)
        values = restored(maps.values, spec["values"])
        return maps.with_entries(maps.keys, values, pa.map_(pa.string(), values.type))
    if kind == "record":
        children = [restored(struct_child(array, each["name"]), each["type"]) for each in spec["fields"]]
        fields = [pa.field(each["name"], child.type) for each, child in zip(spec["fields"], children, strict=True)]
        return struct_of(children, pa.struct(fields), null_mask(array), len(array))
    return array


def _record(name: str, fields: Sequence[pa.Field]) -> Mapping[str, Any]:
    described = []
    for each in fields:
        of = _avro_of(each.type, f"{name}_{each.name}")
        field: dict[str, Any] = {"name": each.name, "type": ["null", of] if each.nullable else of}
        if each.nullable:
            field["default"] = None
        described.append(field)
    return {"type": "record", "name": name, "fields": described}


def _avro_of(type_: pa.DataType, name: str) -> AvroSchema:  # noqa: PLR0911  one per kind of type
    if pa.types.is_decimal(type_):
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if pa.types.is_timestamp(type_):
        prefix = "" if type_.tz is None else "local-"
        return {"type": "long", "logicalType": f"{prefix}timestamp-{_DIGITS[type_.unit]}"}
    if pa.types.is_list(type_):
        return {"type": "array", "items": ["null", _avro_of(type_.value_type, name)]}
    if pa.types.is_map(type_):
        values = ["null", _avro_of(type_.item_type, f"{name}_value")]
        if pa.types.is_string(type_.key_type):
            return {"type": "map", "values": values}
        key = {"name": "key", "type": _avro_of(type_.key_type, f"{name}_key")}
        entry = {"type": "record", "name": name, "fields": [key, {"name": "value", "type": values, "default": None}]}
        return {"type": "array", "items": entry, "logicalType": "map"}
    if pa.types.is_struct(type_):
        return _record(name, [type_.field(index) for index in range(type_.num_fields)])
    return cast("AvroSchema", _PLAIN[type_])


def _of_union(of: AvroSchema) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of a type and its description, ignoring null."""
    if isinstance(of, Sequence) and not isinstance(of, str):
        (of,) = (each for each in of if each != "null")
    if isinstance(of, str):
        return of, {}
    spec = cast("Mapping[str, Any]", of)
    return str(spec["type"]), spec


def _is_entry(of: AvroSchema) -> bool:
    kind, spec = _of_union(of)
    return kind == "record" and [each["name"] for each in spec["fields"]] == ["key", "value"]
