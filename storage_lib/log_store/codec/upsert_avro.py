"""Decode upsert topics, like ``upsert_json``, with Avro values in Confluent's wire format and Avro or JSON keys.

A value is a record of the columns, nullable or not. Columns are matched by name, and the writer's schema determines
units and scales (``avro_changes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.codec.avro_changes import from_avro_column
from storage_lib.log_store.codec.avro_records import WrittenAlike, by_schema, in_order, record_written
from storage_lib.log_store.codec.upsert_json import json_columns
from storage_lib.log_store.codec.upserts import decoded_upserts, refuse_without_key

if TYPE_CHECKING:
    from storage_lib.log_store.codec.log_codec import DecodedChanges
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.schema.table_schema import DataField, TableSchema

_OBJECT = b"{"


@dataclass(frozen=True, slots=True)
class UpsertAvro:
    """Decodes an Avro upsert topic to rows of ``schema``, whose primary key is the topic's."""

    schema: TableSchema
    registry: SchemaRegistry

    def __post_init__(self) -> None:
        """Raise ``InvalidInputError`` for a table that can't hold the rows of an upsert topic."""
        refuse_without_key(self.schema)

    @property
    def name(self) -> str:
        """See ``ChangeDecoder.name``."""
        return "upsert-kafka-avro"

    def decode(self, values: pa.Array, keys: pa.Array) -> DecodedChanges:
        """See ``ChangeDecoder.decode``; every record is one row."""
        return decoded_upserts(self.schema, values, keys, of_values=self._columns, of_keys=self._keys)

    def _keys(self, keys: pa.Array, fields: Sequence[DataField]) -> dict[str, pa.Array]:
        is_json = pc.all(pc.starts_with(keys, _OBJECT), min_count=0).as_py()
        return json_columns(keys, fields) if is_json else self._columns(keys, fields)

    def _columns(self, records: pa.Array, fields: Sequence[DataField]) -> dict[str, pa.Array]:
        parts = [(each.indices, self._read(each, fields)) for each in by_schema(records)]
        arrays = in_order(parts) if parts else [pa.nulls(0, field.type.arrow) for field in fields]
        return {field.name: array for field, array in zip(fields, arrays, strict=True)}

    def _read(self, records: WrittenAlike, fields: Sequence[DataField]) -> list[pa.Array]:
        record, types = record_written(self.registry, records.number)
        found = records.fields(record, [field.name for field in fields if field.name in types])
        return [
            from_avro_column(found[field.name], types[field.name], field.type, field.name)
            if field.name in types
            else pa.nulls(len(records.indices), field.type.arrow)
            for field in fields
        ]
