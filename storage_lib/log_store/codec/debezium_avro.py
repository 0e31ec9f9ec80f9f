"""Convert batches of changes to and from Avro records as Debezium with Confluent's converter writes them.

    value    0, the schema's id (4 bytes, big-endian), Envelope {before: Value or null, after: Value or null, op}
    key      0, the schema's id, Key {the primary key's columns}; or the JSON of debezium-json's keys

The registry holds the schemas under the subjects ``<topic>-value`` and ``<topic>-key``. Each record is read by the
schema that it was written with, and columns are matched by name: missing ones are null, unknown ones are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import AlreadyExistsError, InvalidInputError
from storage_lib.format.avro_encoding import encoded_records
from storage_lib.log_store.codec.avro_changes import from_avro_column, record_of, to_avro_column
from storage_lib.log_store.codec.avro_records import (
    WrittenAlike,
    by_schema,
    fields_of,
    head_of,
    in_order,
    record_written,
)
from storage_lib.log_store.codec.debezium_envelope import (
    Sides,
    decoded_but_tombstones,
    enveloped,
    logged_slices,
    opened,
)
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.codec.log_codec import DecodedChanges, EncodedChanges

if TYPE_CHECKING:
    from storage_lib.format.avro_types import AvroSchema
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.schema.table_schema import TableSchema

TABLE_MARK = "dynamic-table"
"""Schema attribute that holds the uuid of the table that owns the schema."""

_NAMESPACE = "dynamic_table"
_ENVELOPE = frozenset({"before", "after", "op"})
_NULL, _VALUE = b"\x00", b"\x02"
_OPERATION_LENGTH = b"\x02"


@dataclass(frozen=True)
class DebeziumAvro:
    """Codec of one topic. ``table_uuid`` marks the schemas that it registers; empty for an external topic."""

    schema: TableSchema
    registry: SchemaRegistry
    topic: str
    with_update_before: bool = False
    avro_keys: bool = False
    table_uuid: str = ""

    @property
    def name(self) -> str:
        """See ``ChangeDecoder.name``."""
        return "debezium-avro"

    # Schemas

    def refuse_taken(self) -> bool:
        """See ``TopicSchemas``."""
        known = {subject: self._is_ours(subject) for subject in self._schemas}
        taken = [subject for subject, is_ours in known.items() if is_ours is False]
        if taken:
            message = (
                f"the schema registry at {self.registry.url} has a subject {taken[0]!r} that is not this table's; "
                "choose another topic with log.kafka.topic, or delete the subject if it is unused"
            )
            raise AlreadyExistsError(message)
        return not any(known.values())

    def register(self) -> None:
        """See ``TopicSchemas``. Registers a new version if a schema differs from the newest one."""
        for subject, schema in self._schemas.items():
            self.registry.register(subject, schema)

    def unregister(self) -> None:
        """See ``TopicSchemas``."""
        for subject in (f"{self.topic}-key", f"{self.topic}-value"):
            if self._is_ours(subject):
                self.registry.delete(subject)

    def _is_ours(self, subject: str) -> bool | None:
        """Whether a subject belongs to this table; None if the subject does not exist."""
        newest = self.registry.latest(subject)
        return None if newest is None else json.loads(newest).get(TABLE_MARK) == self.table_uuid

    @cached_property
    def _schemas(self) -> Mapping[str, str]:
        schemas = {f"{self.topic}-value": self._spelled(self._envelope)}
        if self.avro_keys and self.schema.primary_keys:
            schemas[f"{self.topic}-key"] = self._spelled(self._key)
        return schemas

    @cached_property
    def _json(self) -> DebeziumJson:
        return DebeziumJson(self.schema, self.with_update_before)

    @cached_property
    def _row(self) -> dict[str, Any]:
        return record_of("Value", self.schema.fields)

    @cached_property
    def _key(self) -> dict[str, Any]:
        return record_of("Key", [self.schema.field(name) for name in self.schema.primary_keys])

    @cached_property
    def _envelope(self) -> dict[str, Any]:
        fields = [
            {"name": "before", "type": ["null", self._row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ]
        return {"type": "record", "name": "Envelope", "fields": fields}

    def _spelled(self, record: Mapping[str, Any]) -> str:
        return json.dumps({**record, "namespace": _NAMESPACE, TABLE_MARK: self.table_uuid}, separators=(",", ":"))

    def _head(self, kind: str) -> bytes:
        subject = f"{self.topic}-{kind}"
        return head_of(self.registry.register(subject, self._schemas[subject]))

    # Encoding

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[EncodedChanges]:
        """See ``LogCodec.encode``."""
        for slice_, codes in logged_slices(rows, kinds, self._json.keys, with_update_before=self.with_update_before):
            yield self._encode_slice(slice_, codes)

    def _encode_slice(self, rows: pa.RecordBatch, codes: np.ndarray) -> EncodedChanges:
        columns = {
            field.name: to_avro_column(rows.column(field.name), field.type, field.name) for field in self.schema.fields
        }
        keys = self._keys(rows, columns)
        plain = encoded_records(list(columns.values()), self._row)
        some = pc.binary_join_element_wise(_VALUE, plain, b"")
        envelopes = enveloped(
            some,
            codes,
            keys if self.schema.primary_keys else None,
            with_update_before=self.with_update_before,
            nothing=_NULL,
        )
        values = pc.binary_join_element_wise(
            self._head("value"), envelopes.before, envelopes.after, _OPERATION_LENGTH, envelopes.operations, b""
        )
        if envelopes.is_record is not None:
            keys, values = keys.filter(envelopes.is_record), values.filter(envelopes.is_record)
        return EncodedChanges(keys=keys, values=values)

    def _keys(self, rows: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.Array:
        if not self.schema.primary_keys:
            return pa.nulls(len(rows), pa.binary())
        if not self.avro_keys:
            return self._json.keys(rows)
        plain = encoded_records([columns[name] for name in self.schema.primary_keys], self._key)
        return pc.binary_join_element_wise(self._head("key"), plain, b"")

    # Decoding

    def decode(self, values: pa.Array, keys: pa.Array | None = None) -> DecodedChanges:  # noqa: ARG002  a row has all
        """See ``ChangeDecoder.decode``; a null is a tombstone and is skipped."""
        return decoded_but_tombstones(values, self._decoded)

    def _decoded(self, values: pa.Array) -> DecodedChanges:
        parts = [(each.indices, self._sides(each)) for each in by_schema(values)]
        before, after, operations = in_order(parts) if parts else self._nothing()
        return opened(before, after, operations, self.schema, self._columns)

    def _columns(self, sides: Sides) -> list[pa.Array]:
        columns = []
        for field in self.schema.fields:
            column = sides.column(field.name)
            if column.null_count and not field.type.nullable:
                message = f"column {field.name!r} is null or missing, but NOT NULL"
                raise ValueError(message)
            columns.append(column)
        return columns

    def _sides(self, records: WrittenAlike) -> list[pa.Array]:
        record, types = record_written(self.registry, records.number)
        if not types.keys() >= _ENVELOPE:
            message = f"schema {records.number} has no before, after and op, so this is not a Debezium change"
            raise ValueError(message)
        found = records.fields(record, _ENVELOPE)
        if not pa.types.is_string(found["op"].type):
            message = "op is not a string"
            raise ValueError(message)
        return [*(self._rows(found[side], fields_of(types[side])) for side in ("before", "after")), found["op"]]

    def _rows(self, side: pa.Array, types: Mapping[str, AvroSchema]) -> pa.Array:
        if pa.types.is_null(side.type):
            return pa.nulls(len(side), self._row_type)
        columns = [
            from_avro_column(side.field(field.name), types[field.name], field.type, field.name)
            if field.name in types
            else pa.nulls(len(side), field.type.arrow)
            for field in self.schema.fields
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self._row_type), mask=side.is_null())

    def _nothing(self) -> list[pa.Array]:
        return [pa.nulls(0, self._row_type), pa.nulls(0, self._row_type), pa.nulls(0, pa.string())]

    @cached_property
    def _row_type(self) -> pa.StructType:
        return pa.struct([(field.name, field.type.arrow) for field in self.schema.fields])


def refuse_names(schema: TableSchema) -> None:
    """Raise ``InvalidInputError`` for a column whose name is not valid in Avro."""
    bad = [field.name for field in schema.fields if not (field.name.isascii() and field.name.isidentifier())]
    if bad:
        message = (
            f"column {bad[0]!r} can't be in an Avro log: Avro names consist of letters, digits and underscores, and "
            "do not start with a digit. Rename the column, or use log.format=debezium-json"
        )
        raise InvalidInputError(message)
