"""Decodes change events of Debezium in JSON, with or without schemas, as envelopes or flattened to the new row.

envelope    {"before": row or null, "after": row or null, "op": "u", "source": {...}}
flattened   {columns of the new row, "__op": "u", "__deleted": "false"}, by ExtractNewRecordState
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.capture.captured_changes import nothing_captured
from storage_lib.log_store.capture.divided_batch import captured_but_unreadable
from storage_lib.log_store.capture.envelope_changes import changes_of
from storage_lib.log_store.capture.flattened_rows import FLATTENED_OTHERS
from storage_lib.log_store.capture.json_payloads import JsonPayloads, payloads
from storage_lib.log_store.capture.json_presence import absent_columns
from storage_lib.log_store.capture.json_rows import ITSELF, JsonRows, read_rows
from storage_lib.log_store.capture.record_groups import (
    ReadGroup,
    envelope_group,
    flattened_group,
    written_by_groups,
)
from storage_lib.log_store.capture.record_keys import json_keys
from storage_lib.log_store.capture.row_images import RowImages, no_images
from storage_lib.log_store.capture.written_changes import operations_of
from storage_lib.log_store.capture.written_rows import images_of
from storage_lib.log_store.codec.connector_messages import are_messages, is_message_schema
from storage_lib.log_store.codec.json_lines import broken_objects
from storage_lib.log_store.codec.looks_like import refuse_other_format
from storage_lib.log_store.conversion.assumed_value_type import of_modes
from storage_lib.log_store.conversion.connect_schema import value_type
from storage_lib.log_store.metadata.record_metadata import of_parts, read_parts, with_parts, written_parts
from storage_lib.schema.types.nested_types import is_nested

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_changes import CapturedChanges
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.conversion.captured_value_type import ValueType
    from storage_lib.schema.types.nested_arrays import Mask

_BEFORE, _AFTER = "before", "after"
_NULL = "null"
_ENVELOPE_OTHERS = {"op": pa.string(), "source": pa.struct([("connector", pa.string())])}


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRecordDecoder:
    """Decodes one topic in JSON to changes of a table; see ``CaptureDecoder``."""

    table: CapturedTable
    has_schema: bool = False
    is_flattened: bool = False

    @property
    def name(self) -> str:
        """See ``CaptureDecoder.name``."""
        kind = "debezium-flattened-json" if self.is_flattened else "debezium-json"
        return f"{kind}-schema" if self.has_schema else kind

    def captured(self, columns: LogColumns) -> CapturedChanges:
        """See ``CaptureDecoder.captured``."""
        nothing = nothing_captured(self.table.every_column)
        return captured_but_unreadable(columns, self._captured, nothing, self.name, broken_objects)

    def _captured(self, columns: LogColumns) -> CapturedChanges:
        places = np.flatnonzero(columns.values.is_valid().to_numpy(zero_copy_only=False))
        texts = columns.values.take(pa.array(places)).cast(pa.string())
        groups = [(places[each.indices], partial(self._read, each)) for each in self._groups(texts)]
        return changes_of(written_by_groups(self.table, columns, groups, json_keys), self.table)

    def _read(self, group: JsonPayloads) -> ReadGroup | None:
        if is_message_schema(group.schema) or group.are_messages:
            return None
        if self.is_flattened:
            refuse_other_format(group.texts, self.table.columns.names)
        types = self._types(group.schema)
        known = {
            side: {name: of_side[name] for name in self.table.columns.names if name in of_side}
            for side, of_side in types.items()
        }
        part_of = None if group.schema is None else partial(_part, value_type(group.schema))
        parts = written_parts(self.table.metadata, part_of, is_flattened=self.is_flattened)
        others = with_parts(FLATTENED_OTHERS if self.is_flattened else _ENVELOPE_OTHERS, parts)
        rows = read_rows(group.texts, known, others)
        metadata = of_parts(
            self.table.metadata,
            read_parts(rows.others, parts),
            len(group.indices),
            is_flattened=self.is_flattened,
        )
        columns = None if group.schema is None else types[ITSELF if self.is_flattened else _AFTER]
        if self.is_flattened:
            return flattened_group(rows.others, self._images(group, rows, known)[ITSELF], columns, metadata)
        return envelope_group(
            self.table,
            operations_of(rows.others["op"]),
            lambda: itemgetter(_BEFORE, _AFTER)(self._images(group, rows, known)),
            connectors=pc.struct_field(rows.others["source"], "connector").to_numpy(zero_copy_only=False),
            columns=columns,
            metadata=metadata,
        )

    def _groups(self, texts: pa.Array) -> list[JsonPayloads]:
        """Group records by schema, without those that are tombstones."""
        found = payloads(texts) if self.has_schema else _without_schema(texts, has_messages=not self.is_flattened)
        if self.is_flattened:
            found = [_without_nulls(each) for each in found]
        return [each for each in found if len(each.indices)]

    def _types(self, schema: Mapping[str, object] | None) -> Mapping[str, Mapping[str, ValueType]]:
        """Return the written types of columns by side: all that the schema has, or the table's without one."""
        sides = (ITSELF,) if self.is_flattened else (_BEFORE, _AFTER)
        if schema is None:
            assumed = {field.name: of_modes(field, self.table.modes) for field in self.table.schema.fields}
            return dict.fromkeys(sides, assumed)
        written = value_type(schema)
        if self.is_flattened:
            return {ITSELF: dict(written.fields)}
        parts = dict(written.fields)
        return {side: dict(parts[side].fields) if side in parts else {} for side in sides}

    def _images(
        self, group: JsonPayloads, rows: JsonRows, sides: Mapping[str, Mapping[str, ValueType]]
    ) -> dict[str, RowImages]:
        absent: Mapping[str, Mapping[str, Mask]] = {}
        if group.schema is None:
            has_rows = any(is_nested(field.type) for field in self.table.schema.fields)
            absent = absent_columns(group.texts, rows.nulls(), has_rows_inside=has_rows)
        return {
            side: no_images(self.table.columns, len(group.indices))
            if not rows.is_there[side].any()
            else images_of(
                self.table,
                {name: (rows.columns[side][name], of) for name, of in types.items()},
                rows.is_there[side],
                absent.get(side, {}),
            )
            for side, types in sides.items()
        }


def _without_schema(texts: pa.Array, *, has_messages: bool) -> list[JsonPayloads]:
    whole = JsonPayloads(indices=np.arange(len(texts)), texts=texts, schema=None)
    is_message = are_messages(texts) if has_messages else np.zeros(len(texts), bool)
    if not is_message.any():
        return [whole]
    return [
        JsonPayloads(
            indices=whole.indices[mask], texts=texts.filter(pa.array(mask)), schema=None, are_messages=are_about_no_row
        )
        for mask, are_about_no_row in ((~is_message, False), (is_message, True))
    ]


def _part(written: ValueType, path: str) -> ValueType | None:
    """Return the type of the part at a path such as ``source.lsn``, None if there is none."""
    found: ValueType | None = written
    for key in path.split("."):
        found = None if found is None else dict(found.fields).get(key)
    return found


def _without_nulls(group: JsonPayloads) -> JsonPayloads:
    """Leave out deletions that are flattened to nothing: for the converter they still have a schema, so it writes null.

    That is the text, not Kafka's null.
    """
    is_row = pc.not_equal(group.texts, _NULL)
    return replace(
        group, indices=group.indices[is_row.to_numpy(zero_copy_only=False)], texts=group.texts.filter(is_row)
    )
