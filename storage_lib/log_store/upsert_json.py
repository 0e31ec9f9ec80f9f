"""Topics of the newest row of each key, as Flink's ``upsert-kafka`` writes them with JSON keys and values.

    key {"id": 1}    value {"id": 1, "name": "a"}    the row of this key from now on      +I
    key {"id": 1}    no value                        there is no such row any more        -D, its key only

Values are spelled as Flink's JSON format does: DECIMAL a number, DATE ``2024-05-14``, TIME ``01:02:03``, TIMESTAMP
``2024-05-14 01:02:03.456``, TIMESTAMP_LTZ the same with a ``Z`` (a ``T`` in place of the blank will do), bytes base64.
Columns the table does not know are ignored; columns a value lacks are taken from the key, or null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.debezium_columns import from_json_column
from storage_lib.log_store.debezium_envelope import first_corrupt
from storage_lib.log_store.json_lines import parsed_objects
from storage_lib.log_store.log_codec import DecodedChanges
from storage_lib.schema.nested_types import is_nested
from storage_lib.schema.row_kind import RowKind

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import DataField, TableSchema

_ANY_DAY = "1970-01-01"


@dataclass(frozen=True, slots=True)
class UpsertJson:
    """Reads such a topic into rows of ``schema``, whose primary key is the topic's."""

    schema: TableSchema

    def __post_init__(self) -> None:
        """Refuse a table that such a topic can't be read into."""
        if not self.schema.primary_keys:
            message = "an upsert-kafka topic needs a table with a primary key: each record is the newest of its key"
            raise InvalidInputError(message)
        nested = [field.name for field in self.schema.fields if is_nested(field.type)]
        if nested:
            message = (
                f"column {nested[0]!r} is {self.schema.field(nested[0]).type}, and nested columns can't be read from "
                "an upsert-kafka topic; use debezium-json, or a table without the column"
            )
            raise InvalidInputError(message)

    @property
    def name(self) -> str:
        """See ``ChangeDecoder.name``."""
        return "upsert-kafka"

    def decode(self, values: pa.Array, keys: pa.Array) -> DecodedChanges:
        """See ``ChangeDecoder.decode``; every record is one row."""
        try:
            rows, kinds = self._decoded(values, keys)
        except (ValueError, pa.ArrowException) as error:
            raise first_corrupt(
                len(values),
                lambda start, stop: self._decoded(values[start:stop], keys[start:stop]),
                error,
                np.arange(len(values)),
            ) from error
        return DecodedChanges(rows=rows, kinds=kinds, record_indices=np.arange(len(values), dtype=np.int64))

    def _decoded(self, values: pa.Array, keys: pa.Array) -> tuple[pa.RecordBatch, pa.Array]:
        is_upsert = values.is_valid()
        upserts = values.drop_null()
        columns = self._columns(upserts, self.schema.fields)
        key_fields = [self.schema.field(name) for name in self.schema.primary_keys]
        needs_key = len(upserts) < len(values) or any(columns[field.name].null_count for field in key_fields)
        if needs_key:
            if keys.null_count:
                message = "a record without a key"
                raise ValueError(message)
            of_keys = self._columns(keys, key_fields)
            columns = {name: _spread(column, is_upsert) for name, column in columns.items()}
            columns |= {name: pc.coalesce(columns[name], column) for name, column in of_keys.items()}
        for field in key_fields:
            if columns[field.name].null_count:
                message = f"neither key nor value has column {field.name!r} of the primary key"
                raise ValueError(message)
        for field in self.schema.fields:
            if not field.type.nullable and pc.any(pc.and_(columns[field.name].is_null(), is_upsert)).as_py():
                message = f"column {field.name!r} is null or missing, but NOT NULL"
                raise ValueError(message)
        kinds = pc.if_else(is_upsert, *(pa.scalar(int(kind), pa.int8()) for kind in (RowKind.INSERT, RowKind.DELETE)))
        schema = pa.schema([field.with_nullable(True) for field in self.schema.arrow_schema])
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema), kinds

    def _columns(self, texts: pa.Array, fields: tuple[DataField, ...] | list[DataField]) -> dict[str, pa.Array]:
        parsed = parsed_objects(
            texts.cast(pa.string()), pa.schema([(field.name, _json_type(field.type.arrow)) for field in fields])
        )
        return {field.name: _typed(column, field) for field, column in zip(fields, parsed, strict=True)}


def _json_type(arrow: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_temporal(arrow) or pa.types.is_binary(arrow)
    return pa.string() if is_text else arrow


def _typed(column: pa.Array, field: DataField) -> pa.Array:
    arrow = field.type.arrow
    if pa.types.is_time(arrow):
        moments = pc.binary_join_element_wise(_ANY_DAY, column, " ").cast(pa.timestamp("us"))
        return moments.cast(pa.time64("us")).cast(arrow)
    if pa.types.is_temporal(arrow):
        return column.cast(arrow)
    return from_json_column(column, field) if pa.types.is_binary(arrow) else column


def _spread(column: pa.Array, where: pa.Array) -> pa.Array:
    """The values of ``column`` at the places where there is one, and nulls elsewhere."""
    places = np.cumsum(where.to_numpy(zero_copy_only=False)) - 1
    return column.take(pa.array(places, mask=~where.to_numpy(zero_copy_only=False)))
