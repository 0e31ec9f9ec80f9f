"""Decodes topics that hold the newest row of each key, as Flink's ``upsert-kafka`` writes them.

    key {"id": 1}    value {"id": 1, "name": "a"}    the new row of this key      +I
    key {"id": 1}    no value                        the row was deleted          -D, with the key only

Values in JSON are encoded as in Flink's JSON format (``of_flink``); in Avro, the writer's schema determines units and
scales. Unknown columns are ignored; columns that a value lacks are taken from the key, or are null.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.capture.avro_rows import avro_images
from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal, all_nullable, nothing_captured
from storage_lib.log_store.capture.divided_batch import captured_but_unreadable
from storage_lib.log_store.capture.json_rows import ITSELF, read_rows
from storage_lib.log_store.capture.row_images import RowImages, merged_images, no_images
from storage_lib.log_store.capture.written_rows import images_of
from storage_lib.log_store.codec.json_lines import broken_objects
from storage_lib.log_store.codec.looks_like import refuse_other_format
from storage_lib.log_store.conversion.assumed_value_type import of_flink
from storage_lib.log_store.metadata.record_metadata import record_metadata
from storage_lib.schema.types.row_kind import RowKind

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry

_OBJECT = b"{"
_NO_KEY = "neither key nor value has a value for the primary key ({keys})"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertRecordDecoder:
    """Decodes one topic to changes of a table with its key; see ``CaptureDecoder``. ``registry`` None means JSON."""

    table: CapturedTable
    registry: SchemaRegistry | None = None

    @property
    def name(self) -> str:
        """See ``CaptureDecoder.name``."""
        return "upsert-kafka" if self.registry is None else "upsert-kafka-avro"

    def captured(self, columns: LogColumns) -> CapturedChanges:
        """See ``CaptureDecoder.captured``; every record is one row."""
        nothing = nothing_captured(self.table.every_column)
        broken = broken_objects if self.registry is None else None
        return captured_but_unreadable(columns, self._captured, nothing, self.name, broken)

    def _captured(self, columns: LogColumns) -> CapturedChanges:
        keys = self.table.primary_keys
        is_upsert = columns.values.is_valid().to_numpy(zero_copy_only=False)
        if self.registry is None:
            refuse_other_format(columns.values.drop_null().cast(pa.string()), self.table.columns.names)
        upserts, deletes = np.flatnonzero(is_upsert), np.flatnonzero(~is_upsert)
        rows = merged_images(
            [
                (upserts, self._rows(columns.values.drop_null(), self.table.columns.names)),
                (deletes, no_images(self.table.columns, len(deletes))),
            ]
        )
        lacks = ~rows.knows(keys)
        if lacks.any():
            rows = _with_keys(rows, self._keys(columns.keys, lacks), keys)
        reasons = {each.record_index: (each.column, each.reason) for each in reversed(rows.refusals)}
        untold = ~_known(rows, keys)
        reasons |= {
            int(i): (None, _NO_KEY.format(keys=", ".join(keys))) for i in np.flatnonzero(untold) if i not in reasons
        }
        metadata = record_metadata(self.table.metadata, columns, self.table.topic, [])
        for index, problem in metadata.problems.items():
            reasons.setdefault(index, problem)
        taken = np.ones(len(is_upsert), bool)
        taken[list(reasons)] = False
        places = np.flatnonzero(taken)
        schema = all_nullable(self.table.every_column)
        every = {**rows.columns, **metadata.columns}
        kinds = np.where(is_upsert, RowKind.INSERT, RowKind.DELETE).astype(np.int8)
        return CapturedChanges(
            rows=pa.RecordBatch.from_arrays(
                [every[name].take(pa.array(places)) for name in schema.names], schema=schema
            ),
            kinds=pa.array(kinds[places]),
            record_indices=places,
            absent={
                name: ~is_upsert[places]
                for name in self.table.columns.names
                if name not in keys and not is_upsert[places].all()
            },
            refusals=tuple(
                Refusal(record_index=index, column=column, reason=reason)
                for index, (column, reason) in sorted(reasons.items())
            ),
        )

    def _rows(self, records: pa.Array, names: list[str]) -> RowImages:
        if self.registry is not None:
            try:
                return avro_images(self.table, self.registry, records, names)
            except InvalidInputError as error:
                raise ValueError(str(error)) from error
        types = {name: of_flink(self.table.schema.field(name)) for name in names}
        rows = read_rows(records.cast(pa.string()), {ITSELF: types}, {})
        columns = {name: (rows.columns[ITSELF][name], of) for name, of in types.items()}
        return images_of(self.table, columns, rows.is_there[ITSELF], {})

    def _keys(self, keys: pa.Array, wanted: np.ndarray) -> RowImages:
        places = np.flatnonzero(wanted & keys.is_valid().to_numpy(zero_copy_only=False))
        others = np.delete(np.arange(len(keys)), places)
        asked = keys.take(pa.array(places))
        is_json = pc.all(pc.starts_with(asked, _OBJECT), min_count=0).as_py()
        decoder = replace(self, registry=None) if is_json else self
        found = decoder._rows(asked, list(self.table.primary_keys))  # noqa: SLF001  of the same class
        return merged_images([(places, found), (others, no_images(self.table.columns, len(others)))])


def _with_keys(rows: RowImages, found: RowImages, keys: tuple[str, ...]) -> RowImages:
    """Return the rows with the values of the key columns that only the records' keys have."""
    columns = {**rows.columns, **{name: pc.coalesce(rows.columns[name], found.columns[name]) for name in keys}}
    return replace(rows, columns=columns, refusals=(*rows.refusals, *found.refusals))


def _known(rows: RowImages, keys: tuple[str, ...]) -> np.ndarray:
    known = np.ones(len(rows.is_there), bool)
    for name in keys:
        known &= rows.columns[name].is_valid().to_numpy(zero_copy_only=False)
    return known
