"""Columns and types as Hive's metastores know them."""

from __future__ import annotations

from typing import Any

from pymetastore.hive_metastore.ttypes import FieldSchema

from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType

_COMMENT_LENGTH_MAX = 255
_LENGTH_MAX = {TypeRoot.CHAR: 255, TypeRoot.VARCHAR: 65535}
"""Maximum lengths in Hive; longer types become ``string``."""
_PLAIN = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "tinyint",
    TypeRoot.SMALLINT: "smallint",
    TypeRoot.INTEGER: "int",
    TypeRoot.BIGINT: "bigint",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.DATE: "date",
    TypeRoot.TIME: "string",
    TypeRoot.BINARY: "binary",
    TypeRoot.VARBINARY: "binary",
    TypeRoot.TIMESTAMP: "timestamp",
    TypeRoot.TIMESTAMP_LTZ: "timestamp",
    TypeRoot.VARIANT: "struct<value:binary,metadata:binary>",
}


def hive_column(field: DataField) -> Any:
    """Return a column of the metastore with the name, type and comment of a field."""
    comment = field.description
    shown_comment = None if comment is None else _shortened(" ".join(comment.splitlines()))
    return FieldSchema(name=field.name, type=hive_type(field.type), comment=shown_comment)


def _shortened(text: str) -> str:
    """Cut to what a metastore stores, which counts the units of UTF-16."""
    return text.encode("utf-16-le")[: 2 * _COMMENT_LENGTH_MAX].decode("utf-16-le", "ignore")


def hive_type(of: DataType) -> str:
    """Return Hive's nearest type: text for one that has a field whose name Hive can't read in a type."""
    return _type(of) if _is_readable(of) else "string"


def _is_readable(of: DataType) -> bool:
    if isinstance(of, RowType):
        return all(field.name.replace("_", "a").isalnum() and _is_readable(field.type) for field in of.fields)
    if isinstance(of, ArrayType | MultisetType):
        return _is_readable(of.element)
    return not isinstance(of, MapType) or (_is_readable(of.key) and _is_readable(of.value))


def _type(of: DataType) -> str:
    if isinstance(of, ArrayType):
        return f"array<{_type(of.element)}>"
    if isinstance(of, MapType):
        return f"map<{_type(of.key)},{_type(of.value)}>"
    if isinstance(of, MultisetType):
        return f"map<{_type(of.element)},int>"
    if isinstance(of, RowType):
        return f"struct<{','.join(f'{field.name}:{_type(field.type)}' for field in of.fields)}>"
    return _scalar(of)


def _scalar(of: DataType) -> str:
    length_max = _LENGTH_MAX.get(of.root)
    if of.root is TypeRoot.DECIMAL:
        return f"decimal({of.precision},{of.scale})"
    if length_max is not None and of.length is not None and of.length <= length_max:
        return f"{of.root.value.lower()}({of.length})"
    return _PLAIN.get(of.root, "string")
