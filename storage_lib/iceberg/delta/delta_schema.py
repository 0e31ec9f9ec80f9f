"""Delta's schema of a table, and which features of Delta's readers it needs.

Readers find a column in a file by its name. Delta's column mapping by the field ids that the files carry would find it
after it was renamed, or dropped and added again; but delta-rs 1.6 reads such columns as null. Column mapping by names
changes nothing, and is a feature that Polars 2.1 refuses.

TINYINT, SMALLINT, INT, BIGINT  byte, short, integer, long    TIMESTAMP      timestamp_ntz
CHAR, VARCHAR, STRING           string                        TIMESTAMP_LTZ  timestamp
BINARY, VARBINARY, BYTES        binary                        MULTISET<t>    map from t to integer
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType, ids_by_path, leaves_of

_PRIMITIVES: Mapping[TypeRoot, str] = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "byte",
    TypeRoot.SMALLINT: "short",
    TypeRoot.INTEGER: "integer",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.DATE: "date",
    TypeRoot.CHAR: "string",
    TypeRoot.VARCHAR: "string",
    TypeRoot.BINARY: "binary",
    TypeRoot.VARBINARY: "binary",
    TypeRoot.TIMESTAMP: "timestamp_ntz",
    TypeRoot.TIMESTAMP_LTZ: "timestamp",
}


def delta_schema(schema: TableSchema, *, maps_names: bool) -> dict[str, Any]:
    """Return the schema as Delta's JSON, with a mapping of each name to itself if ``maps_names``.

    Raises ``InvalidInputError`` for a type that Delta lacks.
    """
    return _struct(schema.fields, maps_names=maps_names)


def is_named_alike(schema: TableSchema, earlier: Iterable[TableSchema]) -> bool:
    """Return whether each column of ``schema`` has its name, and no other one has it, in all earlier schemas."""
    now = dict(ids_by_path(schema.fields))
    names = {each: name for name, each in now.items()}
    return not any(
        now.get(name, field_id) != field_id or names.get(field_id, name) != name
        for each in earlier
        for name, field_id in ids_by_path(each.fields)
    )


def reader_features(schema: TableSchema, *, maps_names: bool) -> list[str]:
    """Return the features that a reader has to know."""
    roots = {leaf.root for each in schema.fields for _, leaf in leaves_of(each.type)}
    return [
        *(["columnMapping"] if maps_names else []),
        "deletionVectors",
        *(["timestampNtz"] if TypeRoot.TIMESTAMP in roots else []),
    ]


def _struct(fields: Iterable[DataField], *, maps_names: bool) -> dict[str, Any]:
    return {"type": "struct", "fields": [_field(each, maps_names=maps_names) for each in fields]}


def _field(field: DataField, *, maps_names: bool) -> dict[str, Any]:
    told: dict[str, Any] = {} if field.description is None else {"comment": field.description}
    if maps_names:
        told |= {"delta.columnMapping.id": field.id, "delta.columnMapping.physicalName": field.name}
    # The parts of a null row are null, whatever their type says.
    return {"name": field.name, "type": _type(field.type, maps_names=maps_names), "nullable": True, "metadata": told}


def _type(of: DataType, *, maps_names: bool) -> str | dict[str, Any]:
    match of:
        case RowType():
            return _struct(of.fields, maps_names=maps_names)
        case ArrayType():
            return {"type": "array", "elementType": _type(of.element, maps_names=maps_names), "containsNull": True}
        case MapType() | MultisetType():
            key = of.key if isinstance(of, MapType) else of.element
            value = of.value if isinstance(of, MapType) else DataType(TypeRoot.INTEGER)
            return {
                "type": "map",
                "keyType": _type(key, maps_names=maps_names),
                "valueType": _type(value, maps_names=maps_names),
                "valueContainsNull": True,
            }
    if of.root is TypeRoot.DECIMAL:
        return f"decimal({of.precision},{of.scale})"
    found = _PRIMITIVES.get(of.root)
    if found is None:
        message = f"{of} has no counterpart in Delta Lake; leave the column or metadata.delta.enabled out"
        raise InvalidInputError(message)
    return found
