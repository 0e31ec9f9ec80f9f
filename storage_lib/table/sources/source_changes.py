"""Commits captured changes to a table with the position after them: completed, checked, each record exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.errors import CommitConflictError, InvalidInputError
from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal, all_nullable
from storage_lib.log_store.capture.divided_batch import divided
from storage_lib.schema.options.table_options import MergeEngine
from storage_lib.schema.types.row_kind import RETRACT_BIT, ROW_KIND_SYMBOLS, RowKind
from storage_lib.table.changes.complete_captured import completed_rows
from storage_lib.table.changes.complete_deletes import with_kind_column, with_whole_deletes
from storage_lib.table.input.input_rows import InputRows
from storage_lib.table.protocol.source_offsets import SourceRange

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.log_store.external.captured_topic import CapturedBatch, CapturedTopic
    from storage_lib.table.dynamic_table import DynamicTable

    Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

_ATTEMPTS = 5
_UNFOUND = (
    "the record leaves out the value because it has not changed, but the table has no row of this key to take it from. "
    "Read the source from a snapshot of the database, or let the database log whole rows"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredChanges:
    """Changes of several batches, in order, each row with its partition and offset. May be empty."""

    rows: pa.Table
    kinds: pa.Array
    buckets: np.ndarray
    offsets: np.ndarray
    unavailable: Mapping[str, Mask]
    absent: Mapping[str, Mask]

    @classmethod
    def of(cls, batches: Sequence[CapturedBatch], columns: pa.Schema) -> GatheredChanges:
        """Concatenate batches; ``columns`` are the table's."""
        every = [each.changes for each in batches]
        return cls(
            rows=pa.Table.from_batches([each.rows for each in every], all_nullable(columns)),
            kinds=pa.concat_arrays([pa.array([], pa.int8()), *(each.kinds for each in every)]),
            buckets=np.concatenate(
                [np.zeros(0, np.int64), *(np.full(each.changes.rows.num_rows, each.bucket) for each in batches)]
            ),
            offsets=np.concatenate([np.zeros(0, np.int64), *(each.offsets for each in batches)]),
            unavailable=_joined([each.unavailable for each in every], every),
            absent=_joined([each.absent for each in every], every),
        )

    def where(self, mask: Mask) -> GatheredChanges:
        """Return the rows in ``mask``."""
        chosen = pa.array(mask)
        return replace(
            self,
            rows=self.rows.filter(chosen),
            kinds=self.kinds.filter(chosen),
            buckets=self.buckets[mask],
            offsets=self.offsets[mask],
            unavailable={name: each[mask] for name, each in self.unavailable.items()},
            absent={name: each[mask] for name, each in self.absent.items()},
        )


@dataclass(frozen=True, slots=True)
class Written:
    """A commit, how many changes it has, and how many records were refused and skipped when it was prepared."""

    snapshot: Snapshot | None
    row_count: int
    skipped_count: int


class SourceChanges:
    """Writes the changes of one source into one table."""

    def __init__(self, table: DynamicTable, captured: CapturedTopic, source: str) -> None:
        self._table = table
        self._captured = captured
        self._source = source
        options = table.options
        self._input = InputRows(
            table.name,
            table.schema,
            options.row_kind_field,
            ignore_delete=options.ignore_delete,
            merge_engine=options.merge_engine,
        )
        self._is_keyed = bool(table.schema.primary_keys)
        self._keeps_nulls = options.merge_engine is MergeEngine.PARTIAL_UPDATE

    # Checking

    def checked(self, changes: CapturedChanges) -> CapturedChanges:
        """Refuse records whose rows the table does not take, as ``append`` would refuse all rows because of them.

        Rows that still lack values are checked when they have been completed.
        """
        rows, kinds = changes.rows, changes.kinds
        lacks = _any_of([*changes.unavailable.values(), *changes.absent.values()], rows.num_rows)
        is_retract = (kinds.to_numpy(zero_copy_only=False) & RETRACT_BIT).astype(bool)
        # Of a row that lacks values only the kind can be checked now: all of its NOT NULL columns are null.
        places = np.flatnonzero(~lacks | (self._table.schema.is_append_only & is_retract))
        whole = rows.take(pa.array(places)) if len(places) < rows.num_rows else rows
        symbols = pa.array(ROW_KIND_SYMBOLS).take(kinds.take(pa.array(places)))
        given = whole.append_column(self._table.options.row_kind_field, symbols)
        reasons: dict[int, str] = {}
        for start, _, _, error in divided(len(places), lambda a, b: self._conform(given.slice(a, b - a))):
            if error is not None:
                reasons.setdefault(int(changes.record_indices[places[start]]), str(error))
        if not reasons:
            return changes
        refused = [Refusal(record_index=index, column=None, reason=reason) for index, reason in reasons.items()]
        is_kept = ~np.isin(changes.record_indices, list(reasons))
        return CapturedChanges(
            rows=rows.filter(pa.array(is_kept)),
            kinds=kinds.filter(pa.array(is_kept)),
            record_indices=changes.record_indices[is_kept],
            unavailable={name: mask[is_kept] for name, mask in changes.unavailable.items()},
            absent={name: mask[is_kept] for name, mask in changes.absent.items()},
            truncations=changes.truncations,
            refusals=tuple(sorted((*changes.refusals, *refused), key=lambda each: each.record_index)),
        )

    def _conform(self, rows: pa.RecordBatch) -> None:
        try:
            self._input.conform(rows)
        except InvalidInputError as error:
            raise ValueError(str(error)) from error

    # Committing

    def commit(self, changes: GatheredChanges, reached: SourceRange, *, change_tracking: bool | None) -> Written:
        """Commit changes. Deletions of rows that are not there are not counted."""
        for attempt in range(_ATTEMPTS):
            base, rows, skipped_count = self._whole(changes)
            try:
                snapshot = self._table.append(rows, change_tracking=change_tracking, source=reached, based_on=base)
            except CommitConflictError:
                if base is None or attempt == _ATTEMPTS - 1 or not self._is_at(reached):
                    raise
                continue
            return Written(snapshot, rows.num_rows, skipped_count)
        raise AssertionError

    def truncate(self, reached: SourceRange, *, change_tracking: bool | None) -> Written:
        """Delete all rows of the table in one commit."""
        for attempt in range(_ATTEMPTS):
            base = self._newest()
            rows = self._table.count() if base is not None else 0
            try:
                snapshot = self._table.append(
                    self._deletions(), change_tracking=change_tracking, source=reached, based_on=base
                )
            except CommitConflictError:
                if base is None or attempt == _ATTEMPTS - 1 or not self._is_at(reached):
                    raise
                continue
            return Written(snapshot, rows, 0)
        raise AssertionError

    def _deletions(self) -> pa.RecordBatchReader:
        """Return a deletion for each row of the table."""
        name = self._table.options.row_kind_field
        stored = self._table.read()
        schema = stored.schema.append(pa.field(name, pa.string()))

        def batches() -> Iterator[pa.RecordBatch]:
            for each in stored:
                kinds = pa.repeat(RowKind.DELETE.symbol, each.num_rows)
                yield pa.RecordBatch.from_arrays([*each.columns, kinds], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _is_at(self, reached: SourceRange) -> bool:
        """Whether the table is still where this commit begins, so that the conflict was about its rows only."""
        recorded = self._table.refresh().inspect.source_offsets(self._source)
        return recorded == reached.start

    def _newest(self) -> int | None:
        snapshot = self._table.inspect.latest_snapshot()
        return None if snapshot is None else snapshot.id

    def _whole(self, changes: GatheredChanges) -> tuple[int | None, pa.Table, int]:
        """Return the table's input, the snapshot whose rows completed it (None if none was needed), and the number of
        records that were skipped.
        """
        if not self._is_keyed:
            return None, with_kind_column(changes.rows, changes.kinds, self._table.options.row_kind_field), 0
        base: list[int] = []

        def find(keys: pa.Table) -> pa.Table:
            newest = self._newest()
            columns = all_nullable(self._table.arrow_schema)
            if newest is None:
                return columns.empty_table()
            base.append(newest)
            return self._table.lookup(keys, snapshot_id=newest).cast(columns)

        keys, skipped_count = self._table.schema.primary_keys, 0
        while True:
            left_out, required = self._left_out(changes)
            found = completed_rows(keys, changes.rows, changes.kinds, left_out, required, find)
            refused = self._refused_late(changes, found.unfound)
            if refused is None:
                break
            skipped_count += len(np.unique(np.stack([changes.buckets, changes.offsets])[:, refused], axis=1)[0])
            changes = changes.where(~refused)
        rows, kinds = with_whole_deletes(keys, found.rows, found.kinds, find)
        # Both look-ups have to be those of one snapshot, or of an older one that nothing has changed since.
        whole = with_kind_column(rows, kinds, self._table.options.row_kind_field)
        return (base[0] if base else None), whole, skipped_count

    def _left_out(self, changes: GatheredChanges) -> tuple[dict[str, Mask], dict[str, Mask]]:
        """Return the masks of all values that are to be completed, and of those of them that have to be found."""
        is_retract = (changes.kinds.to_numpy(zero_copy_only=False) & RETRACT_BIT).astype(bool)
        counts = is_retract if self._keeps_nulls else np.ones(len(is_retract), bool)
        left_out, required = {}, {}
        for field in self._table.schema.fields:
            unavailable, absent = changes.unavailable.get(field.name), changes.absent.get(field.name)
            masks = [mask & counts for mask in (unavailable, absent) if mask is not None]
            if masks:
                left_out[field.name] = _any_of(masks, len(is_retract))
                is_needed = left_out[field.name] if not field.type.nullable else masks[0]
                if unavailable is not None or not field.type.nullable:
                    required[field.name] = is_needed & ~is_retract
        return left_out, required

    def _refused_late(self, changes: GatheredChanges, unfound: Mapping[str, np.ndarray]) -> Mask | None:
        """Refuse records with values that are nowhere; return a mask of all their rows, None if there are none."""
        refused = np.zeros(len(changes.offsets), bool)
        for name, places in unfound.items():
            for place in places.tolist():
                bucket, offset = int(changes.buckets[place]), int(changes.offsets[place])
                is_of_record = (changes.buckets == bucket) & (changes.offsets == offset)
                if not refused[place]:
                    self._captured.refuse_later(bucket, offset, name, _UNFOUND)
                refused |= is_of_record
        return refused if refused.any() else None


def _any_of(masks: Sequence[Mask], count: int) -> Mask:
    found = np.zeros(count, bool)
    for mask in masks:
        found |= mask
    return found


def _joined(masks: Sequence[Mapping[str, Mask]], every: Sequence[CapturedChanges]) -> dict[str, Mask]:
    names = dict.fromkeys(name for each in masks for name in each)
    counts = [each.rows.num_rows for each in every]
    return {
        name: np.concatenate([each.get(name, np.zeros(count, bool)) for each, count in zip(masks, counts, strict=True)])
        for name in names
    }
