"""Iceberg's schema of a table: the columns' field ids are those that its Parquet files carry.

TINYINT, SMALLINT, INT  int          TIMESTAMP, TIMESTAMP_LTZ  timestamp, timestamptz (4 to 6 digits)
BIGINT                  long         CHAR, VARCHAR, STRING     string
DECIMAL(p, s)           decimal      BINARY, VARBINARY, BYTES  binary
ARRAY, MAP, ROW         list, map, struct                      MULTISET<t>  map from t to int
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.field_ids import FIELD_ID_KEY, with_field_id
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType

_PRIMITIVES: Mapping[TypeRoot, str] = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "int",
    TypeRoot.SMALLINT: "int",
    TypeRoot.INTEGER: "int",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.DATE: "date",
    TypeRoot.CHAR: "string",
    TypeRoot.VARCHAR: "string",
    TypeRoot.BINARY: "binary",
    TypeRoot.VARBINARY: "binary",
    TypeRoot.TIMESTAMP: "timestamp",
    TypeRoot.TIMESTAMP_LTZ: "timestamptz",
}
"""Types that readers of Iceberg convert from the files as they are; TIME is not: Iceberg's has microseconds."""
_TIMES = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_IN_MICROSECONDS = range(4, 7)
"""Precisions of times that files have in microseconds, as Iceberg requires.

Fewer digits are stored as milliseconds. Iceberg's reader for Spark then takes those of TIMESTAMP_LTZ for microseconds,
and finds no row by a filter on TIMESTAMP, without an error.
"""
_NOT_IDENTIFYING = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})


def iceberg_schema(schema: TableSchema) -> dict[str, Any]:
    """Return the schema as Iceberg's JSON. Raises ``InvalidInputError`` naming a column that Iceberg can't show."""
    encoded: dict[str, Any] = {"type": "struct", "schema-id": schema.id, "fields": []}
    for each in schema.fields:
        column = with_field_id(schema.arrow_schema.field(each.name), each.id, each.type)
        try:
            encoded["fields"].append(_field(column, each.type, each.description))
        except InvalidInputError as error:
            message = f"column {each.name!r}: {error}"
            raise InvalidInputError(message) from error
    keys = [schema.field(name) for name in schema.primary_keys]
    if keys and not any(each.type.root in _NOT_IDENTIFYING for each in keys):
        encoded["identifier-field-ids"] = [each.id for each in keys]
    return encoded


def primitive_type(of: DataType) -> str:
    """Return Iceberg's name of a scalar type. Raises ``InvalidInputError`` if there is none."""
    if of.root is TypeRoot.DECIMAL:
        return f"decimal({of.precision}, {of.scale})"
    found = _PRIMITIVES.get(of.root)
    if of.root in _TIMES and of.precision not in _IN_MICROSECONDS:
        message = (
            f"{of} has no counterpart in Iceberg, whose times have microseconds in the files; declare a precision of 6 "
            "in a new column, or leave the view out"
        )
        raise InvalidInputError(message)
    if found is None:
        message = (
            f"{of} has no counterpart in Iceberg that its readers find in these files; leave the column or the view out"
        )
        raise InvalidInputError(message)
    return found


def _field(column: pa.Field, of: DataType, comment: str | None) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "id": _id(column),
        "name": column.name,
        "required": not of.nullable,
        "type": _type(column.type, of),
    }
    return encoded if comment is None else {**encoded, "doc": comment}


def _type(arrow: pa.DataType, of: DataType) -> str | dict[str, Any]:
    match of:
        case RowType():
            parts = zip(arrow, of.fields, strict=True)
            return {"type": "struct", "fields": [_part(part, each.name, each.type) for part, each in parts]}
        case ArrayType():
            element = arrow.value_field
            return {
                "type": "list",
                "element-id": _id(element),
                "element-required": False,
                "element": _type(element.type, of.element),
            }
        case MapType() | MultisetType():
            key, value = arrow.key_field, arrow.item_field
            key_type = of.key if isinstance(of, MapType) else of.element
            value_type = of.value if isinstance(of, MapType) else DataType(TypeRoot.INTEGER)
            return {
                "type": "map",
                "key-id": _id(key),
                "key": _type(key.type, key_type),
                "value-id": _id(value),
                "value-required": False,
                "value": _type(value.type, value_type),
            }
        case _:
            return primitive_type(of)


def _part(part: pa.Field, name: str, of: DataType) -> dict[str, Any]:
    # The parts of a null row exist in the file, and are null.
    return {"id": _id(part), "name": name, "required": False, "type": _type(part.type, of)}


def _id(field: pa.Field) -> int:
    return int(field.metadata[FIELD_ID_KEY])
