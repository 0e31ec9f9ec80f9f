"""Types of values by the Avro schema of the record that holds them.

``connect.name``, which Avro converters of Kafka Connect write, has priority over Avro's ``logicalType``. Names of types
have to be spelled out (``avro_cursor.with_names_spelled_out``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.conversion.captured_value_type import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    Meaning,
    ValueType,
    row_of,
)
from storage_lib.log_store.conversion.semantic_types import CONNECT_DECIMAL, decimal_of, with_meaning

if TYPE_CHECKING:
    from storage_lib.format.avro_types import AvroSchema

_PHYSICAL = {
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": FLOAT,
    "double": DOUBLE,
    "string": TEXT,
    "enum": TEXT,
    "bytes": BYTES,
    "fixed": BYTES,
}
_CONNECT_TYPES = {"int8": INT8, "int16": INT16}
_LOGICAL = {
    "date": (Meaning.DATE, None),
    "time-millis": (Meaning.TIME, "ms"),
    "time-micros": (Meaning.TIME, "us"),
    "timestamp-millis": (Meaning.MOMENT, "ms"),
    "timestamp-micros": (Meaning.MOMENT, "us"),
    "timestamp-nanos": (Meaning.MOMENT, "ns"),
    "local-timestamp-millis": (Meaning.TIMESTAMP, "ms"),
    "local-timestamp-micros": (Meaning.TIMESTAMP, "us"),
    "local-timestamp-nanos": (Meaning.TIMESTAMP, "ns"),
}
_ENTRY = ["key", "value"]


def value_type(schema: AvroSchema) -> ValueType:
    """Return the type of the values of an Avro type. Raises ``InvalidInputError`` for a union of several types."""
    if isinstance(schema, str):
        return _of_kind(schema, {})
    if isinstance(schema, Sequence):
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            message = f"the Avro type {str(schema)[:200]} is not one type or null; a column has one type"
            raise InvalidInputError(message)
        return value_type(others[0])
    kind = schema["type"]
    return _of_kind(kind, schema) if isinstance(kind, str) else value_type(kind)


def _of_kind(kind: str, spec: Mapping[str, Any]) -> ValueType:
    physical, name = _physical(kind, spec), spec.get("connect.name")
    parameters = spec.get("connect.parameters") or {}
    logical = spec.get("logicalType")
    if logical == "decimal" and name in (None, CONNECT_DECIMAL) and physical.meaning is Meaning.BYTES:
        # Confluent's converter writes precision 64 for a decimal that has none; the parameter is the column's.
        precision = parameters.get("connect.decimal.precision", None if name else spec.get("precision"))
        return decimal_of(spec.get("scale", parameters.get("scale")), precision, CONNECT_DECIMAL)
    if name is None and logical in _LOGICAL and physical.meaning is Meaning.INTEGER:
        meaning, unit = _LOGICAL[logical]
        return ValueType(meaning=meaning, unit=unit, name=logical)
    if name is None and logical == "uuid" and physical.meaning is Meaning.TEXT:
        return with_meaning(physical, "uuid", {})
    return with_meaning(physical, name, parameters)


def _physical(kind: str, spec: Mapping[str, Any]) -> ValueType:
    match kind:
        case "array":
            items = value_type(spec["items"])
            if items.meaning is Meaning.ROW and [name for name, _ in items.fields] == _ENTRY:
                (_, key), (_, element) = items.fields
                return ValueType(meaning=Meaning.MAP, key=key, element=element)
            return ValueType(meaning=Meaning.ARRAY, element=items)
        case "map":
            return ValueType(meaning=Meaning.MAP, key=TEXT, element=value_type(spec["values"]))
        case "record":
            fields = spec["fields"]
            return row_of({each["name"]: _of_field(each) for each in fields})
        case _ if kind in _PHYSICAL:
            return _CONNECT_TYPES.get(str(spec.get("connect.type")), _PHYSICAL[kind])
    message = f"the Avro type {kind!r} is not the type of a column"
    raise InvalidInputError(message)


def _of_field(field: Mapping[str, Any]) -> ValueType:
    comment = field.get("doc") or _comment(field["type"])
    return replace(
        value_type(field["type"]), default=field.get("default"), comment=None if comment is None else str(comment)
    )


def _comment(schema: AvroSchema) -> object:
    """Return what a converter of Kafka Connect writes as the comment of a value; None without one."""
    if isinstance(schema, str):
        return None
    if isinstance(schema, Mapping):
        return schema.get("connect.doc")
    return next((found for each in schema if (found := _comment(each)) is not None), None)
