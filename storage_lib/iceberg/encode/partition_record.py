"""Partition spec of a view (identity of each partition column), and partitions as records of a manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from storage_lib.file_store.data_file.comparable_key import EPOCH, EPOCH_DAY, EPOCH_UTC, MICROSECOND
from storage_lib.iceberg.encode.iceberg_schema import primitive_type
from storage_lib.schema.table_schema import DataField, TableSchema
from storage_lib.schema.types.data_types import DataType, TypeRoot

SPEC_ID = 0
_FIRST_ID = 1000
_UNFIT = re.compile(r"[^A-Za-z0-9_]")
_AVRO: Mapping[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
}


def partition_fields(schema: TableSchema) -> list[dict[str, Any]]:
    """Return the fields of the partition spec as Iceberg's JSON; empty for a table without partitions."""
    return [
        {"name": each.name, "transform": "identity", "source-id": each.id, "field-id": _FIRST_ID + place}
        for place, each in enumerate(schema.partition_fields)
    ]


def last_partition_id(schema: TableSchema) -> int:
    """Return the highest id of a partition field; 999 if there is none."""
    return _FIRST_ID + len(schema.partition_keys) - 1


def partition_avro(schema: TableSchema) -> dict[str, Any]:
    """Return the Avro record of a partition."""
    fields = [
        {
            "name": avro_name(each.name),
            "type": ["null", _avro(each.type)],
            "default": None,
            "field-id": _FIRST_ID + place,
        }
        for place, each in enumerate(schema.partition_fields)
    ]
    return {"type": "record", "name": "r102", "fields": fields}


def partition_record(schema: TableSchema, values: Mapping[str, object]) -> dict[str, object]:
    """Return a partition's values by name, as Avro stores them without logical types."""
    return {avro_name(each.name): _stored(values[each.name], each) for each in schema.partition_fields}


def avro_name(name: str) -> str:
    """Return a name that Avro allows, by the rule of Iceberg's own writer."""
    first = f"_{name[0]}" if name[0].isdigit() else _UNFIT.sub(_spelled, name[0])
    return first + _UNFIT.sub(_spelled, name[1:])


def unscaled(value: Decimal, scale: int) -> int:
    """Return a decimal times 10 to the power of ``scale``. Raises ``ValueError`` if that is not a whole number."""
    # Without ``scaleb``, which rounds to the digits of the thread's context.
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        message = f"{value} is not a number"
        raise ValueError(message)  # noqa: TRY004  the type is that of a decimal
    whole = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    shift = exponent + scale
    if shift < 0 and whole % 10**-shift:
        message = f"{value} has more than {scale} digits after the point"
        raise ValueError(message)
    return whole * 10**shift if shift >= 0 else whole // 10**-shift


def _spelled(found: re.Match[str]) -> str:
    return f"_x{ord(found[0]):X}"


def _avro(of: DataType) -> Any:
    if of.root is not TypeRoot.DECIMAL:
        return _AVRO[primitive_type(of)]
    return {
        "type": "fixed",
        "name": f"decimal_{of.precision}_{of.scale}",
        "size": _decimal_bytes(of),
        "logicalType": "decimal",
        "precision": of.precision,
        "scale": of.scale,
    }


def _decimal_bytes(of: DataType) -> int:
    """Return the number of bytes of the largest unscaled value, with its sign."""
    return (10 ** (of.precision or 0) - 1).bit_length() // 8 + 1


def _stored(value: object, field: DataField) -> object:
    match value:
        case Decimal():
            return unscaled(value, field.type.scale or 0).to_bytes(_decimal_bytes(field.type), "big", signed=True)
        case datetime():
            return (value - (EPOCH if value.tzinfo is None else EPOCH_UTC)) // MICROSECOND
        case date():
            return (value - EPOCH_DAY).days
        case _:
            return value
