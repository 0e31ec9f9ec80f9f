"""Decodes change events of Debezium in Avro, in Confluent's wire format, as envelopes or flattened to the new row.

Keys may be Avro or JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.capture.avro_rows import avro_images, row_images, side_images
from storage_lib.log_store.capture.before_images import holds_whole_before
from storage_lib.log_store.capture.captured_changes import Refusal, SourceColumns, nothing_captured
from storage_lib.log_store.capture.divided_batch import captured_but_unreadable
from storage_lib.log_store.capture.envelope_changes import changes_of
from storage_lib.log_store.capture.flattened_rows import ADDED_PREFIX, FLATTENED_OTHERS, flattened_operations
from storage_lib.log_store.capture.record_keys import json_keys, key_images
from storage_lib.log_store.capture.row_images import RowImages, merged_images, no_images
from storage_lib.log_store.capture.written_changes import Operation, WrittenChanges, operations_of
from storage_lib.log_store.codec.avro_records import by_schema, fields_of, record_written
from storage_lib.log_store.conversion.avro_value_type import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib.format.avro_types import AvroSchema
    from storage_lib.log_store.capture.captured_changes import CapturedChanges
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.avro_records import WrittenAlike
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.log_store.conversion.captured_value_type import ValueType

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
        return captured_but_unreadable(columns, self._captured, nothing_captured(self.table.columns))

    def _captured(self, columns: LogColumns) -> CapturedChanges:
        values = columns.values
        is_there = values.is_valid().to_numpy(zero_copy_only=False)
        places, tombstones = np.flatnonzero(is_there), np.flatnonzero(~is_there)
        operations = np.full(len(values), Operation.TOMBSTONE, np.int8)
        nothing = no_images(self.table.columns, len(tombstones))
        before, after = [(tombstones, nothing)], [(tombstones, nothing)]
        connectors = np.full(len(values), None, object)
        schemas, refusals = list[SourceColumns](), list[Refusal]()
        for each in by_schema(values.take(pa.array(places))):
            mine = places[each.indices]
            record, types = record_written(self.registry, each.number)
            read = self._flattened if self.is_flattened else self._envelopes
            try:
                operations[mine], old, new, connectors[mine] = read(each, record, types)
                schemas.append(SourceColumns(record_index=int(mine[0]), columns=self._source_columns(types)))
            except InvalidInputError as error:
                # No value of these types can be one of the table, so it is the same for each record.
                operations[mine] = Operation.MESSAGE
                old = new = no_images(self.table.columns, len(mine))
                refusals += [Refusal(record_index=index, column=None, reason=str(error)) for index in mine.tolist()]
            before.append((mine, old))
            after.append((mine, new))
        whole = holds_whole_before(self.table.before_image, pa.array(connectors, pa.string()), columns.keys)
        old_rows = merged_images(before)
        wants_key = (operations == Operation.TOMBSTONE) | (
            np.isin(operations, (Operation.UPDATE, Operation.DELETE)) & ~(whole & old_rows.is_whole)
        )
        written = WrittenChanges(
            operations=operations,
            before=old_rows,
            after=merged_images(after),
            keys=key_images(self.table, columns.keys, wants_key, self._keys),
            holds_whole_before=whole,
            schemas=tuple(schemas),
            refusals=tuple(refusals),
        )
        return changes_of(written, self.table)

    def _source_columns(self, types: Mapping[str, AvroSchema]) -> Mapping[str, ValueType]:
        fields = types if self.is_flattened else fields_of(types["after"])
        return {
            name: value_type(of)
            for name, of in fields.items()
            if not (self.is_flattened and name.startswith(ADDED_PREFIX))
        }

    def _envelopes(
        self, records: WrittenAlike, record: AvroSchema, types: Mapping[str, AvroSchema]
    ) -> tuple[np.ndarray, RowImages, RowImages, np.ndarray]:
        if not types.keys() >= set(_ENVELOPE):
            message = f"schema {records.number} has no before, after and op, so this is not a Debezium change"
            raise ValueError(message)
        found = records.fields(record, [name for name in (*_ENVELOPE, "source") if name in types])
        if not pa.types.is_string(found["op"].type):
            message = "op is not a string"
            raise ValueError(message)
        old, new = (side_images(self.table, found[side], types[side]) for side in ("before", "after"))
        return operations_of(found["op"]), old, new, _connectors(found.get("source"), len(found["op"]))

    def _flattened(
        self, records: WrittenAlike, record: AvroSchema, types: Mapping[str, AvroSchema]
    ) -> tuple[np.ndarray, RowImages, RowImages, np.ndarray]:
        count = len(records.indices)
        found = records.fields(
            record, [name for name in (*self.table.columns.names, *FLATTENED_OTHERS) if name in types]
        )
        others = {
            name: found[name].cast(of) if name in found else pa.nulls(count, of)
            for name, of in FLATTENED_OTHERS.items()
        }
        operations = flattened_operations(others)
        rows = row_images(self.table, found, types, np.ones(count, bool))
        is_deleted = operations == Operation.DELETE
        return operations, rows.where(is_deleted), rows.where(~is_deleted), np.full(count, "", object)

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


def _connectors(source: pa.Array | None, count: int) -> np.ndarray:
    if source is None or not pa.types.is_struct(source.type) or source.type.get_field_index("connector") < 0:
        return np.full(count, None, object)
    names: np.ndarray = pc.struct_field(source, "connector").cast(pa.string()).to_numpy(zero_copy_only=False)
    return names
