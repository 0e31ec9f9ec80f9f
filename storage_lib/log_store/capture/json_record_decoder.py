"""Decodes change events of Debezium in JSON, with or without schemas, as envelopes or flattened to the new row.

envelope    {"before": row or null, "after": row or null, "op": "u", "source": {...}}
flattened   {columns of the new row, "__op": "u", "__deleted": "false"}, by ExtractNewRecordState
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.capture.before_images import holds_whole_before
from storage_lib.log_store.capture.captured_changes import Refusal, SourceColumns, nothing_captured
from storage_lib.log_store.capture.divided_batch import captured_but_unreadable
from storage_lib.log_store.capture.envelope_changes import changes_of
from storage_lib.log_store.capture.flattened_rows import ADDED_PREFIX, FLATTENED_OTHERS, flattened_operations
from storage_lib.log_store.capture.json_payloads import JsonPayloads, payloads
from storage_lib.log_store.capture.json_presence import absent_columns
from storage_lib.log_store.capture.json_rows import ITSELF, JsonRows, read_rows
from storage_lib.log_store.capture.record_keys import json_keys, key_images
from storage_lib.log_store.capture.row_images import RowImages, merged_images, no_images
from storage_lib.log_store.capture.written_changes import (
    Operation,
    WrittenChanges,
    operations_of,
)
from storage_lib.log_store.capture.written_rows import images_of
from storage_lib.log_store.conversion.assumed_value_type import of_modes
from storage_lib.log_store.conversion.connect_schema import value_type
from storage_lib.schema.types.nested_types import is_nested

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_changes import CapturedChanges, Mask
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.conversion.captured_value_type import ValueType

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
        return captured_but_unreadable(columns, self._captured, nothing_captured(self.table.columns))

    def _captured(self, columns: LogColumns) -> CapturedChanges:
        return changes_of(self._written(columns), self.table)

    def _written(self, columns: LogColumns) -> WrittenChanges:
        values = columns.values
        places = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        groups = self._groups(values.take(pa.array(places)).cast(pa.string()))
        operations = np.full(len(values), Operation.TOMBSTONE, np.int8)
        is_there = np.zeros(len(values), np.bool_)
        for each in groups:
            is_there[places[each.indices]] = True
        tombstones = np.flatnonzero(~is_there)
        nothing = no_images(self.table.columns, len(tombstones))
        before, after = [(tombstones, nothing)], [(tombstones, nothing)]
        connectors = np.full(len(values), None, object)
        schemas, refusals = list[SourceColumns](), list[Refusal]()
        for each in groups:
            mine = places[each.indices]
            try:
                sides = self._types(each.schema)
                columns_of_source = None if each.schema is None else self._source_columns(each.schema)
                rows = read_rows(each.texts, sides, FLATTENED_OTHERS if self.is_flattened else _ENVELOPE_OTHERS)
                images = self._images(each, rows, sides)
            except InvalidInputError as error:
                # No value of these types can be one of the table, so it is the same for each record.
                operations[mine] = Operation.MESSAGE
                before.append((mine, no_images(self.table.columns, len(mine))))
                after.append(before[-1])
                refusals += [Refusal(record_index=index, column=None, reason=str(error)) for index in mine.tolist()]
                continue
            if columns_of_source is not None:
                schemas.append(SourceColumns(record_index=int(mine[0]), columns=columns_of_source))
            if self.is_flattened:
                operations[mine] = flattened_operations(rows.others)
                is_deleted = operations[mine] == Operation.DELETE
                before.append((mine, images[ITSELF].where(is_deleted)))
                after.append((mine, images[ITSELF].where(~is_deleted)))
                connectors[mine] = ""
            else:
                operations[mine] = self._operations(rows.others["op"], each.texts)
                before.append((mine, images[_BEFORE]))
                after.append((mine, images[_AFTER]))
                connectors[mine] = pc.struct_field(rows.others["source"], "connector").to_numpy(zero_copy_only=False)
        whole = holds_whole_before(self.table.before_image, pa.array(connectors, pa.string()), columns.keys)
        merged_before = merged_images(before)
        wants_key = (operations == Operation.TOMBSTONE) | (
            np.isin(operations, (Operation.UPDATE, Operation.DELETE)) & ~(whole & merged_before.is_whole)
        )
        return WrittenChanges(
            operations=operations,
            before=merged_before,
            after=merged_images(after),
            keys=key_images(self.table, columns.keys, wants_key, json_keys),
            holds_whole_before=whole,
            schemas=tuple(schemas),
            refusals=tuple(refusals),
        )

    def _operations(self, codes: pa.Array, texts: pa.Array) -> np.ndarray:
        try:
            return operations_of(codes)
        except ValueError as error:
            if self.has_schema or not pc.any(pc.match_substring(texts, '"payload"'), min_count=0).as_py():
                raise
            message = f"{error}. It has a schema next to its payload: use the format debezium-json-schema"
            raise ValueError(message) from error

    def _groups(self, texts: pa.Array) -> list[JsonPayloads]:
        """Group records by schema, without those that are tombstones."""
        whole = JsonPayloads(indices=np.arange(len(texts)), texts=texts, schema=None)
        found = payloads(texts) if self.has_schema else [whole]
        if self.is_flattened:
            found = [_without_nulls(each) for each in found]
        return [each for each in found if len(each.indices)]

    def _types(self, schema: Mapping[str, object] | None) -> Mapping[str, Mapping[str, ValueType]]:
        """Return the written types of the table's columns by side."""
        names = (ITSELF,) if self.is_flattened else (_BEFORE, _AFTER)
        if schema is None:
            assumed = {field.name: of_modes(field, self.table.modes) for field in self.table.schema.fields}
            return dict.fromkeys(names, assumed)
        written = value_type(schema)
        found = {}
        for side in names:
            of_side = written if side == ITSELF else dict(written.fields).get(side)
            fields = {} if of_side is None else dict(of_side.fields)
            found[side] = {name: fields[name] for name in self.table.columns.names if name in fields}
        return found

    def _source_columns(self, schema: Mapping[str, object]) -> Mapping[str, ValueType]:
        written = value_type(schema)
        of_row = written if self.is_flattened else dict(written.fields).get(_AFTER)
        fields = () if of_row is None else of_row.fields
        # ExtractNewRecordState prefixes what is no column.
        return {name: of for name, of in fields if not (self.is_flattened and name.startswith(ADDED_PREFIX))}

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


def _without_nulls(group: JsonPayloads) -> JsonPayloads:
    """Leave out deletions that are flattened to nothing: for the converter they still have a schema, so it writes null.

    That is the text, not Kafka's null.
    """
    is_row = pc.not_equal(group.texts, _NULL)
    return replace(
        group, indices=group.indices[is_row.to_numpy(zero_copy_only=False)], texts=group.texts.filter(is_row)
    )
