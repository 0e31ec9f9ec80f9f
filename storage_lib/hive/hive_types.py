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
    shown_comment = None if comment is None else " ".join(comment.splitlines())[:_COMMENT_LENGTH_MAX]
    return FieldSchema(name=field.name, type=hive_type(field.type), comment=shown_comment)


def hive_type(of: DataType) -> str:
    """Return Hive's nearest type."""
    if isinstance(of, ArrayType):
        return f"array<{hive_type(of.element)}>"
    if isinstance(of, MapType):
        return f"map<{hive_type(of.key)},{hive_type(of.value)}>"
    if isinstance(of, MultisetType):
        return f"map<{hive_type(of.element)},int>"
    if isinstance(of, RowType):
        return f"struct<{','.join(f'{field.name}:{hive_type(field.type)}' for field in of.fields)}>"
    return _scalar(of)


def _scalar(of: DataType) -> str:
    length_max = _LENGTH_MAX.get(of.root)
    if of.root is TypeRoot.DECIMAL:
        return f"decimal({of.precision},{of.scale})"
    if length_max is not None and of.length is not None and of.length <= length_max:
        return f"{of.root.value.lower()}({of.length})"
    return _PLAIN.get(of.root, "string")
