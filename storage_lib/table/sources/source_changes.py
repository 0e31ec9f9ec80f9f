"""Commits captured changes to a table with the position after them: completed, checked, each record exactly once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import CommitConflictError
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.log_store.capture.captured_changes import all_nullable, any_mask
from storage_lib.log_store.external.captured_topic import RefusedRecord
from storage_lib.schema.options.source_options import OnReject
from storage_lib.schema.types.rejected_schema import ID, REJECTED_SCHEMA
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.changes.complete_captured import CompletedRows, completed_rows
from storage_lib.table.changes.complete_deletes import with_kind_column, with_whole_deletes
from storage_lib.table.changes.stand_in_values import with_stand_ins
from storage_lib.table.changes.update_before import one_batch
from storage_lib.table.protocol.source_offsets import SourceRange
from storage_lib.table.sources.fitting_records import FittingRecords
from storage_lib.table.sources.gathered_changes import GatheredChanges
from storage_lib.table.sources.row_check import RowCheck, unmet
from storage_lib.table.sources.unsure_values import UnsureValues

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.log_store.external.captured_topic import CapturedTopic
    from storage_lib.schema.types.nested_arrays import Mask
    from storage_lib.table.dynamic_table import DynamicTable


_ATTEMPTS = 5
_UNFOUND = (
    "the record leaves out the value because it has not changed, but the table has no row of this key to take it from. "
    "Read the source from a snapshot of the database, or let the database log whole rows. If it is a value of the "
    "column, which only looks left out, set another placeholder (debezium.unavailable-value-placeholder)"
)

_IS_NULL = (
    "the record leaves out the value because it has not changed, but the table has null there, which the source would "
    "not leave out: the column is newer than the table's row, or had another name. Let the source write the value "
    "again (an UPDATE of the column, or an incremental snapshot), or let it log whole rows"
)
_UNORDERED = (
    "the record leaves out the value because it has not changed, but the topic has got partitions since it was read "
    "last, and the record with the value may be in one that is read later. With source.on-reject=quarantine it is kept "
    "apart, and reingest() takes it once everything has been read"
)


@dataclass(frozen=True, slots=True)
class Written:
    """A commit, how many changes it has, and how many records were refused."""

    snapshot: Snapshot | None
    row_count: int
    refused_count: int


@dataclass(frozen=True, slots=True)
class _Append:
    """Input of ``table.append``: ``rows`` that were computed from the snapshot ``based_on``, None if from none."""

    based_on: int | None
    rows: pa.Table | pa.RecordBatchReader
    row_count: int
    refused: tuple[RefusedRecord, ...]
    table: DynamicTable


class SourceChanges:
    """Writes the changes of one source into one table. ``is_in_order``: the records of each key come in their order.

    ``expect`` checks the new rows; the records of those that do not pass are refused.
    """

    def __init__(
        self,
        table: DynamicTable,
        captured: CapturedTopic,
        source: str,
        *,
        is_in_order: bool = True,
        expect: RowCheck | None = None,
    ) -> None:
        self._is_in_order = is_in_order
        self._expect = expect
        self._table = table
        self._captured = captured
        self._source = source
        options = table.options
        metadata = captured.decoder.table.metadata_names
        self.fitting = FittingRecords(table.name, table.schema, options, metadata=metadata)
        # Then a deletion has its own place in the order of its key, and outlives older rows that come later.
        is_ordered = bool(options.sequence_field) and set(options.sequence_field) <= set(metadata)
        self._order = SequenceOrder(fields=options.sequence_field) if is_ordered else None
        # Null leaves the stored value in these, or adds nothing to it; a stored value would count twice.
        self._keeps_nulls = options.merge_engine.keeps_nulls

    def commit(
        self,
        changes: GatheredChanges,
        reached: SourceRange,
        *,
        change_tracking: bool | None,
        admit: Callable[[Sequence[RefusedRecord]], None] | None = None,
    ) -> Written:
        """Commit changes. Deletions of rows that are not there are not counted.

        ``admit`` is called with all refused records before a commit, and raises an error if they are too many.
        """

        def append() -> _Append:
            base, rows, refused = self.whole(changes)
            if admit is not None:
                admit(refused)
            return _Append(base, rows, rows.num_rows, refused, self._table)

        return self._committed(append, reached, change_tracking=change_tracking)

    def truncate(self, reached: SourceRange, *, change_tracking: bool | None) -> Written:
        """Delete all rows of the table in one commit."""

        def append() -> _Append:
            base = self._newest()
            # Streams need the rows that it deletes with all columns, also those that others have added.
            table = self._table.refresh()
            count = table.count() if base is not None else 0
            return _Append(base, self._deletions(table), count, (), table)

        return self._committed(append, reached, change_tracking=change_tracking)

    def _committed(
        self, prepared: Callable[[], _Append], reached: SourceRange, *, change_tracking: bool | None
    ) -> Written:
        """Commit what was prepared; prepare it again if others have changed the rows that it was computed from."""
        attempt = 1
        while True:
            append = prepared()
            try:
                snapshot = append.table.append(
                    append.rows,
                    change_tracking=change_tracking,
                    source=reached,
                    rejected=self._kept_apart(append.refused),
                    based_on=append.based_on,
                )
            except CommitConflictError:
                if append.based_on is None or attempt == _ATTEMPTS or not self._is_at(reached):
                    raise
                attempt += 1
            else:
                return Written(snapshot, append.row_count, len(append.refused))

    def _deletions(self, table: DynamicTable) -> pa.RecordBatchReader:
        """Return a deletion for each row of the table."""
        name = table.options.row_kind_field
        stored = table.read()
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

    def whole(
        self, changes: GatheredChanges, *, resolving: Collection[str] = ()
    ) -> tuple[int | None, pa.Table, tuple[RefusedRecord, ...]]:
        """Return the table's input, the snapshot whose rows completed it (None if none was needed), and the records
        that are refused.

        ``resolving`` are the ids of rejected records that are written now.
        """
        keys = self._table.schema.primary_keys
        kind_column = self._table.options.row_kind_field
        late: list[RefusedRecord] = []
        changes = self._without_unmet(changes, late)
        if not keys:
            return None, with_kind_column(changes.rows, changes.kinds, kind_column), (*changes.refused, *late)
        base: list[int] = []

        def find(keys: pa.Table) -> pa.Table:
            newest = self._newest()
            columns = all_nullable(self._table.arrow_schema)
            if newest is None:
                return columns.empty_table()
            base.append(newest)
            return self._table.lookup(keys, snapshot_id=newest).cast(columns)

        while True:
            changes = self._without_unsure(self._without_unordered(changes, late), late, resolving)
            left_out, required = self._left_out(changes)
            found = completed_rows(keys, changes.rows, changes.kinds, left_out, required, find, order=self._order)
            if self._order:
                found = replace(found, rows=with_stand_ins(found.rows, found.kinds, self._table.schema))
            lacked = any_mask(left_out.values(), len(changes.offsets))[found.came_from]
            known = {} if changes.leaves_out_nulls else required
            refused = self._refused_late(changes, self._problems(found, lacked, known), late)
            if not refused.any():
                break
            changes = changes.where(~refused)
        rows, kinds = found.rows, found.kinds
        if not self._order:  # a table with sequence.field has no log, which needs whole deletions
            rows, kinds = with_whole_deletes(keys, rows, kinds, find, completed=lacked)
        # Both look-ups have to be those of one snapshot, or of an older one that nothing has changed since.
        return (base[0] if base else None), with_kind_column(rows, kinds, kind_column), (*changes.refused, *late)

    def _without_unmet(self, changes: GatheredChanges, late: list[RefusedRecord]) -> GatheredChanges:
        """Refuse the records whose rows do not pass the check, of those that nothing has to complete."""
        if self._expect is None:
            return changes
        left_out, _ = self._left_out(changes)
        is_whole = ~any_mask(left_out.values(), len(changes.offsets))
        problems = unmet(self._expect, changes.rows, changes.kinds, is_whole)
        return changes.where(~self._refused_late(changes, problems, late)) if problems else changes

    def _without_unordered(self, changes: GatheredChanges, late: list[RefusedRecord]) -> GatheredChanges:
        """Refuse the records that leave out unchanged values, if the row before them may not have been read yet."""
        if self._is_in_order or not self._order:
            return changes
        problems: dict[int, tuple[str | None, str]] = {
            int(place): (name, _UNORDERED)
            for name, mask in changes.unavailable.items()
            for place in np.flatnonzero(mask & ~retracts(changes.kinds))
        }
        return changes.where(~self._refused_late(changes, problems, late)) if problems else changes

    def _without_unsure(
        self, changes: GatheredChanges, late: list[RefusedRecord], resolving: Collection[str]
    ) -> GatheredChanges:
        """Refuse the records whose unchanged values a refused record may have changed; return the other changes."""
        # Records that are skipped are lost on purpose.
        keeps = self._captured.settings.on_reject is OnReject.QUARANTINE
        stored: pa.Table | None = None
        while True:
            is_new = ~retracts(changes.kinds)
            unchanged = {name: mask & is_new for name, mask in changes.unavailable.items() if (mask & is_new).any()}
            if not unchanged:
                return changes
            if stored is None:
                keys = changes.keys.filter(pa.array(any_mask(unchanged.values(), len(is_new))))
                stored = self._rejected_before(keys, resolving)
            unsure = UnsureValues(self._captured, changes, stored)
            problems = unsure.problems(unchanged, (*changes.refused, *late) if keeps else ())
            if not problems:
                return changes
            # These records may have changed other values.
            changes = changes.where(~self._refused_late(changes, problems, late))

    def _rejected_before(self, keys: pa.ChunkedArray, resolving: Collection[str]) -> pa.Table:
        """Return the table's rejected records of some keys, but those that are written now."""
        stored = self._table.inspect.rejected_of_keys(keys.unique(), source=self._source)
        return stored.filter(pc.invert(pc.is_in(stored[ID], pa.array([*resolving], pa.string()))))

    def _left_out(self, changes: GatheredChanges) -> tuple[dict[str, Mask], dict[str, Mask]]:
        """Return the masks of all values that are to be completed, and of those of them that have to be found."""
        is_retract = retracts(changes.kinds)
        counts = is_retract if self._keeps_nulls else np.ones(len(is_retract), bool)
        required = {name: mask & counts & ~is_retract for name, mask in changes.unavailable.items()}
        left_out = {name: mask & counts for name, mask in changes.unavailable.items()}
        for name, mask in changes.absent.items():
            left_out[name] = left_out.get(name, np.zeros(len(is_retract), bool)) | (mask & counts)
        return left_out, required

    def _problems(
        self, found: CompletedRows, lacked: Mask, known: Mapping[str, Mask]
    ) -> dict[int, tuple[str | None, str]]:
        """Return the positions of changes that could not be completed, or do not fit now, with column and reason.

        ``lacked`` marks the rows that were completed, ``known`` the changes that leave out a value which is not null.
        """
        problems: dict[int, tuple[str | None, str]] = {
            int(place): (name, _UNFOUND) for name, places in found.unfound.items() for place in places
        }
        for name, mask in known.items():
            is_null = found.rows.column(name).is_null().to_numpy()
            for place in found.came_from[is_null & mask[found.came_from]].tolist():
                problems.setdefault(place, (name, _IS_NULL))
        places = np.flatnonzero(lacked)
        completed = one_batch(found.rows.take(pa.array(places)))
        for place, problem in self.fitting.misfits(completed, found.kinds.take(pa.array(places))).items():
            problems.setdefault(int(found.came_from[places[place]]), problem)
        for place, problem in unmet(self._expect, found.rows, found.kinds, lacked).items():
            problems.setdefault(int(found.came_from[place]), problem)
        return self._first_of_keys(found, problems)

    def _first_of_keys(
        self, found: CompletedRows, problems: Mapping[int, tuple[str | None, str]]
    ) -> dict[int, tuple[str | None, str]]:
        """Return the first problem of each key: later changes may be completed otherwise once its row is gone."""
        if not problems:
            return {}
        by_place = np.flatnonzero(np.isin(found.came_from, list(problems)))
        keys = comparable_frame(found.rows.select(list(self._table.schema.primary_keys)).take(pa.array(by_place)))
        firsts = keys.with_row_index("index").unique(keys.columns, keep="first")["index"].to_numpy()
        kept = {int(found.came_from[by_place[first]]) for first in firsts}
        return {place: problem for place, problem in problems.items() if place in kept}

    def _refused_late(
        self, changes: GatheredChanges, problems: Mapping[int, tuple[str | None, str]], late: list[RefusedRecord]
    ) -> Mask:
        """Add the records with problems to ``late``; return a mask of all rows of these records."""
        refused = np.zeros(len(changes.offsets), bool)
        of_buckets: dict[int, dict[int, tuple[str | None, str]]] = {}
        for place in sorted(problems):
            of_bucket = of_buckets.setdefault(int(changes.buckets[place]), {})
            of_bucket.setdefault(int(changes.offsets[place]), problems[place])
        for bucket, of_bucket in of_buckets.items():
            late += self._captured.refuse_later(bucket, of_bucket)
            refused |= (changes.buckets == bucket) & np.isin(changes.offsets, list(of_bucket))
        return refused

    def _kept_apart(self, refused: Sequence[RefusedRecord]) -> pa.Table | None:
        """Return refused records as the table stores them, None if they are skipped."""
        if not refused or self._captured.settings.on_reject is not OnReject.QUARANTINE:
            return None
        now = self._table.environment.clock.now_millis()
        of_source = {"time_millis": now, "source": self._source, "topic": self._captured.name}
        columns = {name: [value] * len(refused) for name, value in of_source.items()}
        # By column, because ``asdict`` for each record took a third of the time where every second one is rejected.
        columns |= {each.name: list(map(attrgetter(each.name), refused)) for each in fields(RefusedRecord)}
        return pa.Table.from_pydict(columns, schema=REJECTED_SCHEMA)
