"""Incremental reads: changes between two snapshots, or in ``[t1, t2)``, without reading unchanged buckets.

    every   what each commit changed, in commit order: the rows that it appended, or, where it replaced files, the
            difference it made. Compactions change nothing.
    net     at most one change a key; without a key, as many changes of a row as its count changed by. A bucket that
            was only appended to is read from the appended files; one that was overwritten meanwhile is compared as it
            was with what it has become.

``+I`` and ``+U`` are returned as they were written: an insert may have an existing key. Applying the changes to the
content at the start gives the content at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError, SnapshotExpiredError
from storage_lib.file_store.committing.commit_changes import deleted
from storage_lib.file_store.planning.live_files import LiveFiles
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.schema.encoding.moment_text import moment_text
from storage_lib.schema.placing.layout import has_same_rows, layout_of
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.changelog.snapshot_changes import SnapshotChanges
from storage_lib.table.changelog.snapshot_diff import Place, SnapshotDiff, places_that_differ
from storage_lib.table.changes.change_direction import of_one_direction
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.changes.multiset_change import summed_changes
from storage_lib.table.protocol.change_split import ChangeSplit, ChangeStep
from storage_lib.table.protocol.snapshot_log_properties import REWROTE
from storage_lib.table.protocol.table_context import TableContext

_ROWS_UNCHANGED = (CommitKind.COMPACT, CommitKind.ANALYZE)


class ChangeMode(StrEnum):
    """Which changes of a range are returned."""

    NET = "net"
    EVERY = "every"


class ChangeScan:
    """Plans and reads the changes of one branch of a table. Threads may share it."""

    def __init__(self, context: TableContext, *, changes: SnapshotChanges, difference: SnapshotDiff) -> None:
        self._table = context.name
        self._schema = context.schema
        self._file_store = context.file_store
        self._changes = changes
        self._difference = difference
        self._row_kind_column = context.options.row_kind_field
        # Whether the newest row of a key, in commit order, is the row that the table shows.
        self._newest_wins = context.options.newest_wins
        # Without a key, equal rows are counted.
        self._adds_up = not context.schema.primary_keys

    @property
    def arrow_schema(self) -> pa.Schema:
        """The table's columns and, last, the row kind (string)."""
        return self._schema.arrow_schema.append(pa.field(self._row_kind_column, pa.string(), nullable=False))

    def plan_range(
        self, *, snapshots: tuple[int | None, int | None], times: tuple[int | None, int | None], mode: str
    ) -> tuple[ChangeSplit, ...]:
        """Plan a range that users name by snapshot ids or by times, with or without an end; otherwise as ``plan``."""
        try:
            chosen = ChangeMode(mode)
        except ValueError as error:
            message = f"table {self._table}: mode {mode!r} is none; use {' or '.join(ChangeMode)}"
            raise InvalidInputError(message) from error
        (first, last), (start, end) = snapshots, times
        if (
            (first is None) == (start is None)
            or (last is not None and start is not None)
            or (end is not None and first is not None)
        ):
            message = (
                f"table {self._table}: changes are asked for by snapshot (start_snapshot_id, end_snapshot_id) or by "
                "time (start_timestamp_millis, end_timestamp_millis); give the start of one of these, and its "
                "end if wanted"
            )
            raise InvalidInputError(message)
        if start is not None:
            first, last = self.range_of_times(start, end)
        return self.plan(first or 0, last, chosen)

    def range_of_times(self, start_millis: int, end_millis: int | None) -> tuple[int, int]:
        """Return the snapshots (first exclusive, last inclusive) created in ``[start, end)``, epoch milliseconds.

        Raises ``SnapshotExpiredError`` if some of these may have been expired.
        """
        if end_millis is not None and end_millis < start_millis:
            message = (
                f"table {self._table}: changes from {moment_text(start_millis)} to {moment_text(end_millis)} "
                "go backwards; swap the times"
            )
            raise InvalidInputError(message)
        history = self._file_store.snapshots
        start_id = history.last_before(start_millis)
        earliest = history.earliest_id()
        if earliest is not None and start_id < earliest and earliest > 1:
            message = (
                f"table {self._table}: the earliest snapshot kept is {earliest}, made at "
                f"{moment_text(history.load(earliest).time_millis)}; whether others were made between "
                f"{moment_text(start_millis)} and then is not known any more. Ask for a later start, or "
                "keep snapshots longer (a consumer, a tag)"
            )
            raise SnapshotExpiredError(message)
        end_id = (history.latest_id() or 0) if end_millis is None else history.last_before(end_millis)
        return start_id, max(start_id, end_id)

    def plan(self, start_id: int, end_id: int | None, mode: ChangeMode) -> tuple[ChangeSplit, ...]:
        """Plan the changes after snapshot ``start_id`` (0: the empty table) up to ``end_id`` (default: the newest).

        One split per bucket with changes. Raises ``SnapshotExpiredError`` and ``NotFoundError`` for the snapshots,
        ``InvalidInputError`` for a range that goes backwards.
        """
        newest = self._file_store.snapshots.latest_id() or 0
        last = newest if end_id is None else end_id
        if start_id < 0 or last < start_id:
            message = (
                f"table {self._table}: changes from snapshot {start_id} to {last} go backwards; swap the snapshots"
            )
            raise InvalidInputError(message)
        snapshots = self._file_store.snapshots.load_all(range(start_id + 1, last + 1))
        self._refuse_rewritten(snapshots)
        changing = [each for each in snapshots if each.commit_kind not in _ROWS_UNCHANGED]
        steps = self._net_steps(start_id, changing) if mode is ChangeMode.NET else self._every_step(changing)
        return tuple(
            ChangeSplit(partition=partition, bucket=bucket, steps=tuple(of_place), is_net=mode is ChangeMode.NET)
            for (partition, bucket), of_place in sorted(steps.items(), key=lambda item: item[0])
        )

    def _refuse_rewritten(self, snapshots: Sequence[Snapshot]) -> None:
        """Refuse a range across a rewrite: changes are read per bucket, and a rewrite changes buckets or keys."""
        rewritten = [each.id for each in snapshots if REWROTE in each.properties]
        if rewritten:
            message = (
                f"table {self._table}: changes across snapshot {rewritten[-1]} cannot be read, because it rewrote the "
                f"table with other buckets or a new primary key; read the changes since snapshot {rewritten[-1]}"
            )
            raise InvalidInputError(message)
        for each in snapshots[-1:]:
            made_under = self._file_store.version(each.schema_id)
            if not has_same_rows(made_under, self._schema):
                message = (
                    f"table {self._table}: the changes up to snapshot {each.id} cannot be read, because they precede "
                    "the rewrite that added the primary key; read the changes since that rewrite"
                )
                raise InvalidInputError(message)

    def plan_all(self) -> tuple[ChangeSplit, ...]:
        """Plan all known changes, starting with the content of the earliest snapshot (since the last rewrite)."""
        history = self._file_store.snapshots
        earliest = history.earliest_id()
        if earliest is not None and layout_of(self._schema):
            made = history.load_all(range(earliest, (history.latest_id() or earliest) + 1))
            earliest = max((each.id for each in made if REWROTE in each.properties), default=earliest)
        if earliest is None or earliest == 1:
            return self.plan(0, None, ChangeMode.EVERY)
        first: dict[Place, list[ChangeStep]] = {}
        self._add_difference(first, LiveFiles.empty(), self._content(earliest), earliest)
        began = (
            ChangeSplit(partition=partition, bucket=bucket, steps=tuple(steps), is_net=False)
            for (partition, bucket), steps in sorted(first.items(), key=lambda item: item[0])
        )
        return (*began, *self.plan(earliest, None, ChangeMode.EVERY))

    def read(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Read the changes of one split, with their kinds; net changes are held in memory."""
        if not split.is_net or self._schema.is_append_only:
            for step in split.steps:
                yield from self._read_step(split, step)
            return
        batches = [batch for step in split.steps for batch in self._read_step(split, step)]
        rows = pa.Table.from_batches(batches, schema=self.arrow_schema)
        yield from (self._summed(rows) if self._adds_up else self._newest(rows).to_batches())

    def read_all(self, splits: Sequence[ChangeSplit]) -> Iterator[pa.RecordBatch]:
        """Read the changes of all splits so that they can be applied by key, also to keys that move between them."""
        compares = any(step.appended is None for split in splits for step in split.steps)
        if not (self._schema.crosses_partitions or (self._schema.has_dynamic_buckets and compares)):
            yield from (batch for split in splits for batch in self.read(split))
            return
        for of_commit in _by_commit(splits):
            for retracts in (True, False):
                for split in of_commit:
                    for batch in self.read(split):
                        yield of_one_direction(batch, self._row_kind_column, retracts=retracts)

    def _every_step(self, snapshots: list[Snapshot]) -> dict[Place, list[ChangeStep]]:
        steps: dict[Place, list[ChangeStep]] = {}
        for snapshot in snapshots:
            if self.is_covered_by_its_files(snapshot):
                self._add_appended(steps, snapshot)
            else:
                after = self._file_store.scan.live_files(snapshot)
                self._add_difference(steps, self._before(snapshot, after), after, snapshot.id)
        return steps

    def _net_steps(self, start_id: int, snapshots: list[Snapshot]) -> dict[Place, list[ChangeStep]]:
        steps: dict[Place, list[ChangeStep]] = {}
        replaced: set[Place] = set()
        for snapshot in snapshots:
            if self.is_covered_by_its_files(snapshot):
                self._add_appended(steps, snapshot)
            else:
                replaced |= self._file_store.scan.changed_buckets(snapshot)
        if replaced:
            last = snapshots[-1]
            whole: dict[Place, list[ChangeStep]] = {}
            self._add_difference(whole, self._content(start_id), self._file_store.scan.live_files(last), last.id)
            for place in replaced:
                steps.pop(place, None)
                if place in whole:
                    steps[place] = whole[place]
        return steps

    def is_covered_by_its_files(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot's added rows are its changes; otherwise contents have to be compared."""
        return (self._newest_wins or self._adds_up) and snapshot.commit_kind is CommitKind.APPEND

    def _before(self, snapshot: Snapshot, after: LiveFiles) -> LiveFiles:
        """Return the content before the snapshot; for an append even if the previous snapshot has expired."""
        if snapshot.commit_kind is CommitKind.APPEND:
            return after.apply(deleted(entry) for entry in self._file_store.scan.delta(snapshot))
        return self._content(snapshot.id - 1)

    def _content(self, snapshot_id: int) -> LiveFiles:
        if snapshot_id == 0:
            return LiveFiles.empty()
        history = self._file_store.snapshots
        snapshot, earliest = history.load(snapshot_id), history.earliest_id()
        if earliest is not None and snapshot_id < earliest:
            # The snapshot can still be loaded, but its files may be deleted.
            message = (
                f"table {self._table}: snapshot {snapshot_id} has been expired; the earliest kept is {earliest}: ask "
                "for changes from there on, or keep snapshots longer (a consumer, a tag)"
            )
            raise SnapshotExpiredError(message)
        return self._file_store.scan.live_files(snapshot)

    def _add_appended(self, steps: dict[Place, list[ChangeStep]], snapshot: Snapshot) -> None:
        for split in self._changes.splits(snapshot):
            step = ChangeStep(snapshot_id=snapshot.id, appended=split)
            steps.setdefault((split.partition, split.bucket), []).append(step)

    def _add_difference(
        self, steps: dict[Place, list[ChangeStep]], before: LiveFiles, after: LiveFiles, snapshot_id: int
    ) -> None:
        old, new = places_that_differ(before, after)
        for place in old:
            step = ChangeStep(snapshot_id=snapshot_id, before=tuple(old[place]), after=tuple(new[place]))
            steps.setdefault(place, []).append(step)

    def _read_step(self, split: ChangeSplit, step: ChangeStep) -> Iterator[pa.RecordBatch]:
        if step.appended is not None:
            changes = self._changes.read_split(step.appended)
        else:
            place = (split.partition, split.bucket)
            changes = self._difference.between({place: step.before}, {place: step.after}, snapshot_id=step.snapshot_id)
        symbols = pa.array(ROW_KIND_SYMBOLS)
        for rows, kinds in changes:
            if rows.num_rows:
                columns = [*rows.columns, symbols.take(kinds)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)

    def _summed(self, changes: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the net insertions and deletions of equal rows."""
        symbols = changes.column(self._row_kind_column)
        counts = np.where(pc.starts_with(symbols, "+").to_numpy(), 1, -1)
        for rows, kinds in summed_changes(changes.drop_columns([self._row_kind_column]), counts):
            columns = [*rows.columns, pa.array(ROW_KIND_SYMBOLS).take(kinds)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)

    def _newest(self, changes: pa.Table) -> pa.Table:
        """Return the last change of every key, in the given order."""
        keys = self._schema.primary_keys
        frame = comparable_frame(changes.select(keys))
        last = frame.with_row_index("index").unique(subset=frame.columns, keep="last", maintain_order=True)["index"]
        return changes.take(last.to_arrow()).combine_chunks()


def _by_commit(splits: Sequence[ChangeSplit]) -> Iterator[Sequence[ChangeSplit]]:
    """Yield the parts of the splits commit by commit; net changes are those of one commit."""
    if any(split.is_net for split in splits):
        yield splits
        return
    for commit in sorted({step.snapshot_id for split in splits for step in split.steps}):
        parts = (
            replace(split, steps=tuple(step for step in split.steps if step.snapshot_id == commit)) for split in splits
        )
        yield [part for part in parts if part.steps]
