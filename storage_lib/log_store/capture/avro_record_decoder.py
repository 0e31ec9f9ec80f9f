"""Decodes change events of Debezium in Avro, in Confluent's wire format, as envelopes or flattened to the new row.

Keys may be Avro or JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.capture.avro_rows import avro_images, row_images, side_images
from storage_lib.log_store.capture.captured_changes import nothing_captured
from storage_lib.log_store.capture.divided_batch import captured_but_unreadable
from storage_lib.log_store.capture.envelope_changes import changes_of
from storage_lib.log_store.capture.flattened_rows import FLATTENED_OTHERS
from storage_lib.log_store.capture.record_groups import (
    ReadGroup,
    envelope_group,
    flattened_group,
    written_by_groups,
)
from storage_lib.log_store.capture.record_keys import json_keys
from storage_lib.log_store.capture.row_images import RowImages, merged_images
from storage_lib.log_store.capture.written_changes import operations_of
from storage_lib.log_store.codec.avro_records import by_schema, fields_of, record_written
from storage_lib.log_store.codec.connector_messages import is_message_schema
from storage_lib.log_store.conversion.avro_value_type import value_type
from storage_lib.log_store.metadata.record_metadata import of_parts, read_parts, written_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib.format.avro_types import AvroSchema
    from storage_lib.log_store.capture.captured_changes import CapturedChanges
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.avro_records import WrittenAlike
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.log_store.conversion.captured_value_type import ValueType
    from storage_lib.log_store.conversion.captured_values import Converted

_ENVELOPE = ("before", "after", "op")
_MAGIC = b"\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroRecordDecoder:
    """Decodes one topic in Avro to changes of a table; see ``CaptureDecoder``."""

    table: CapturedTable
    registry: SchemaRegistry
    is_flattened: bool = False

    @property
    def name(self) -> str:
        """See ``CaptureDecoder.name``."""
        return "debezium-flattened-avro" if self.is_flattened else "debezium-avro"

    def captured(self, columns: LogColumns) -> CapturedChanges:
        """See ``CaptureDecoder.captured``. Raises ``UnavailableError`` if the registry does not answer."""
        return captured_but_unreadable(columns, self._captured, nothing_captured(self.table.every_column), self.name)

    def _captured(self, columns: LogColumns) -> CapturedChanges:
        places = np.flatnonzero(columns.values.is_valid().to_numpy(zero_copy_only=False))
        read = self._flattened if self.is_flattened else self._envelopes
        groups = [
            (places[each.indices], partial(read, each, *record_written(self.registry, each.number)))
            for each in by_schema(columns.values.take(pa.array(places)))
        ]
        return changes_of(written_by_groups(self.table, columns, groups, self._keys), self.table)

    def _envelopes(
        self, records: WrittenAlike, record: AvroSchema, types: Mapping[str, AvroSchema]
    ) -> ReadGroup | None:
        if is_message_schema(record):
            return None
        if not types.keys() >= set(_ENVELOPE):
            message = f"schema {records.number} has no before, after and op, so this is not a Debezium change"
            raise ValueError(message)
        parts = self._parts(types)
        wanted = dict.fromkeys([*_ENVELOPE, "source", *(path.partition(".")[0] for path in parts)])
        found = records.fields(record, [name for name in wanted if name in types])
        if not pa.types.is_string(found["op"].type):
            message = "op is not a string"
            raise ValueError(message)
        return envelope_group(
            self.table,
            operations_of(found["op"]),
            lambda: (
                side_images(self.table, found["before"], types["before"]),
                side_images(self.table, found["after"], types["after"]),
            ),
            connectors=_connectors(found.get("source"), len(found["op"])),
            columns={name: value_type(of) for name, of in fields_of(types["after"]).items()},
            metadata=self._metadata(found, parts, len(found["op"])),
        )

    def _flattened(
        self, records: WrittenAlike, record: AvroSchema, types: Mapping[str, AvroSchema]
    ) -> ReadGroup | None:
        if is_message_schema(record):
            return None
        count = len(records.indices)
        parts = self._parts(types)
        wanted = dict.fromkeys([*self.table.columns.names, *FLATTENED_OTHERS, *parts])
        found = records.fields(record, [name for name in wanted if name in types])
        others = {
            name: found[name].cast(of) if name in found else pa.nulls(count, of)
            for name, of in FLATTENED_OTHERS.items()
        }
        rows = row_images(self.table, found, types, np.ones(count, bool))
        columns = {name: value_type(of) for name, of in types.items()}
        return flattened_group(others, rows, columns, self._metadata(found, parts, count))

    def _parts(self, types: Mapping[str, AvroSchema]) -> dict[str, ValueType]:
        """Return by path the types of the parts that columns are filled with."""
        return written_parts(self.table.metadata, partial(_part, types), is_flattened=self.is_flattened)

    def _metadata(
        self, found: Mapping[str, pa.Array], parts: Mapping[str, ValueType], count: int
    ) -> dict[str, Converted]:
        return of_parts(self.table.metadata, read_parts(found, parts), count, is_flattened=self.is_flattened)

    def _keys(self, table: CapturedTable, keys: pa.Array) -> RowImages:
        is_avro = pc.starts_with(keys, _MAGIC).to_numpy(zero_copy_only=False)
        parts = [
            (places, images)
            for mask, read in ((is_avro, self._avro_keys), (~is_avro, json_keys))
            if len(places := np.flatnonzero(mask))
            for images in (read(table, keys.take(pa.array(places))),)
        ]
        return merged_images(parts)

    def _avro_keys(self, table: CapturedTable, keys: pa.Array) -> RowImages:
        return avro_images(table, self.registry, keys, table.primary_keys)


def _part(types: Mapping[str, AvroSchema], path: str) -> ValueType | None:
    """Return the type of the part at a path such as ``source.lsn``, None if there is none."""
    outer, _, inner = path.partition(".")
    of = types.get(outer)
    if of is not None and inner:
        of = fields_of(of).get(inner)
    return None if of is None else value_type(of)


def _connectors(source: pa.Array | None, count: int) -> np.ndarray:
    if source is None or not pa.types.is_struct(source.type) or source.type.get_field_index("connector") < 0:
        return np.full(count, None, object)
    names: np.ndarray = pc.struct_field(source, "connector").cast(pa.string()).to_numpy(zero_copy_only=False)
    return names
