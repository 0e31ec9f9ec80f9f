"""The columns of a table of another format as those of a table here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_schema import new_table_schema

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

_OF_ANY_TABLE = {"bucket": "1"}
"""Options that a schema has to have; their values have no effect on its columns."""


def columns_alone(columns: pa.Schema) -> TableSchema:
    """Return columns as those of a table here, with ids from 0; raises ``InvalidInputError`` as ``schema_of``."""
    return new_table_schema(columns, options=_OF_ANY_TABLE, time_millis=0)


def schema_of(name: str, columns: pa.Schema, ids: Mapping[str, int]) -> TableSchema:
    """Return the columns of table ``name`` with their ids; all may be null, as only their writers check them.

    Raises ``InvalidInputError`` for a type or a name that tables here don't have.
    """
    plain = pa.schema([pa.field(each.name, each.type) for each in columns])
    try:
        schema = columns_alone(plain)
    except InvalidInputError as error:
        message = f"a materialized table can't read {name}: {error}"
        raise InvalidInputError(message) from error
    return replace(schema, fields=tuple(replace(each, id=ids[each.name]) for each in schema.fields))
