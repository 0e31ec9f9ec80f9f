"""Convert the records of upsert topics, which hold the newest row per key, to rows and kinds in any encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.codec.debezium_envelope import UNREADABLE, first_corrupt
from storage_lib.log_store.codec.log_codec import DecodedChanges
from storage_lib.schema.types.row_kind import RowKind

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import DataField, TableSchema

    Reader = Callable[[pa.Array, Sequence[DataField]], dict[str, pa.Array]]
    """Decodes binary values of records to the given columns, in the table's types; null where a column is missing."""


def refuse_without_key(schema: TableSchema) -> None:
    """Raise ``InvalidInputError`` for a table without a primary key, which can't hold the rows of an upsert topic."""
    if not schema.primary_keys:
        message = "an upsert-kafka topic needs a table with a primary key: each record is the newest of its key"
        raise InvalidInputError(message)


def decoded_upserts(
    schema: TableSchema, values: pa.Array, keys: pa.Array, *, of_values: Reader, of_keys: Reader
) -> DecodedChanges:
    """Decode every record to one row: +I of its value, or -D of its key if it has no value.

    Raises ``CorruptRecordError`` for the first value that is not a row of the schema.
    """

    def decoded(start: int, stop: int) -> tuple[pa.RecordBatch, pa.Array]:
        return _decoded(schema, values[start:stop], keys[start:stop], of_values, of_keys)

    try:
        rows, kinds = decoded(0, len(values))
    except UNREADABLE as error:
        raise first_corrupt(len(values), decoded, error, np.arange(len(values))) from error
    return DecodedChanges(rows=rows, kinds=kinds, record_indices=np.arange(len(values), dtype=np.int64))


def _decoded(
    schema: TableSchema, values: pa.Array, keys: pa.Array, of_values: Reader, of_keys: Reader
) -> tuple[pa.RecordBatch, pa.Array]:
    is_upsert = values.is_valid()
    upserts = values.drop_null()
    columns = of_values(upserts, schema.fields)
    key_fields = [schema.field(name) for name in schema.primary_keys]
    if len(upserts) < len(values) or any(columns[field.name].null_count for field in key_fields):
        if keys.null_count:
            message = "a record without a key"
            raise ValueError(message)
        columns = {name: _spread(column, is_upsert) for name, column in columns.items()}
        columns |= {name: pc.coalesce(columns[name], column) for name, column in of_keys(keys, key_fields).items()}
    for field in key_fields:
        if columns[field.name].null_count:
            message = f"neither key nor value has column {field.name!r} of the primary key"
            raise ValueError(message)
    for field in schema.fields:
        if not field.type.nullable and pc.any(pc.and_(columns[field.name].is_null(), is_upsert)).as_py():
            message = f"column {field.name!r} is null or missing, but NOT NULL"
            raise ValueError(message)
    kinds = pc.if_else(is_upsert, *(pa.scalar(int(kind), pa.int8()) for kind in (RowKind.INSERT, RowKind.DELETE)))
    nullable = pa.schema([field.with_nullable(True) for field in schema.arrow_schema])
    return pa.RecordBatch.from_arrays([columns[name] for name in nullable.names], schema=nullable), kinds


def _spread(column: pa.Array, where: pa.Array) -> pa.Array:
    """Place the values of ``column``, in order, at the true places of ``where``, and nulls elsewhere."""
    is_there = where.to_numpy(zero_copy_only=False)
    return column.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))
