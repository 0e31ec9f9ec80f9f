"""Names of the types that a table's columns have in Spark, as ``DataType.simpleString`` writes them.

Queries of materialized tables are in Spark's SQL, so that every engine that computes them needs these types, also where
Spark is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Mapping[TypeRoot, str] = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "tinyint",
    TypeRoot.SMALLINT: "smallint",
    TypeRoot.INTEGER: "int",
    TypeRoot.BIGINT: "bigint",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.DATE: "date",
    TypeRoot.TIME: "time(6)",
    TypeRoot.CHAR: "string",
    TypeRoot.VARCHAR: "string",
    TypeRoot.BINARY: "binary",
    TypeRoot.VARBINARY: "binary",
    TypeRoot.TIMESTAMP: "timestamp_ntz",
    TypeRoot.TIMESTAMP_LTZ: "timestamp",
    TypeRoot.VARIANT: "variant",
}


def spark_name(of: DataType) -> str:
    """Return the name of the Spark type of a column: ``bigint``, ``decimal(10,2)``, ``array<struct<a:int>>``."""
    match of:
        case ArrayType():
            return f"array<{spark_name(of.element)}>"
        case MapType():
            return f"map<{spark_name(of.key)},{spark_name(of.value)}>"
        case MultisetType():
            return f"map<{spark_name(of.element)},int>"
        case RowType():
            return f"struct<{','.join(f'{each.name}:{spark_name(each.type)}' for each in of.fields)}>"
    if of.root is TypeRoot.DECIMAL:
        return f"decimal({of.precision or 10},{of.scale or 0})"
    return _NAMES[of.root]
