"""Completes a stream with pre-images kept in a state (``scan.normalize=state``), also where the log has others.

    table's snapshot ─▶ version of the state ─ changes ─▶ next version ─ changes ─▶ …
                        └── what was there before ──┘

The state is initialised from the files of the table's snapshot when the stream starts to follow the log; from then on
it contains the rows that the stream has read, so the table may expire snapshots and change files untracked. Pre-images
are looked up in a version that is not newer than the changes, and a new version follows only the newest one: a stretch
that is read again, by a restarted stream, a repeated task or both at once, returns the same changes. A lost state is
rebuilt at the stream's position, as long as the table keeps that snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from storage_lib.file_store.split import Split
from storage_lib.file_store.store import FileStore
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.changelog.changelog_normalizer import ChangelogNormalizer, Stretch, stretches
from storage_lib.table.changelog.changelog_state import ChangelogState, StateVersion
from storage_lib.table.changelog.complete_appends import together


class StatefulNormalizer:
    """Reads the changes of one table's streams with pre-images from a state.

    ``open_state`` opens the state of a bucket for a stream that began with a snapshot (0: none). ``without_state``
    looks up pre-images that need no state: those of repairs.
    """

    keeps_state = True

    def __init__(
        self,
        *,
        without_state: ChangelogNormalizer,
        file_store: FileStore,
        open_state: Callable[[int, int], ChangelogState],
    ) -> None:
        self._without_state = without_state
        self._file_store = file_store
        self._open_state = open_state

    def read_split(self, split: Split) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Read a snapshot's appended rows of one bucket with kinds (int8) and pre-images; for tables without a log."""
        return self._without_state.read_split(split)

    def read_log(
        self, log: LogStore, bucket: int, start: int, end: int, *, began_with: int, began_empty: bool = False
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Read as ``ChangelogNormalizer.read_log``; afterwards the state contains the log up to ``end``.

        If ``start`` equals ``end``, it only advances the state: a stream initialises it when it switches from snapshot
        to log.
        """
        state = self._open_state(bucket, began_with)
        self._bring_up_to(state, log, bucket, start, began_with=began_with, began_empty=began_empty)
        first = state.at(start)
        if first is None:
            # The stream returned to a position before all versions: use the table's history instead.
            yield from self._without_state.read_log(log, bucket, start, end, began_with=began_with)
            return
        reached = start
        for stretch, stop in _with_ends(_read(log, bucket, start, end), end):
            is_seen = stretch.repairs is not None and stretch.repairs <= began_with
            if not is_seen:
                version = state.at(stretch.first_offset) or first
                rows, kinds = self._completed(version, state, log, bucket, stretch)
                if rows.num_rows:
                    yield rows, kinds
            _resume(state, reached, [] if is_seen else [(stretch.rows, stretch.kinds)], stop)
            reached = stop
        # Only ends of transactions remain, which may expire before the stream reads further records.
        _resume(state, reached, [], end)

    def _completed(
        self, version: StateVersion, state: ChangelogState, log: LogStore, bucket: int, stretch: Stretch
    ) -> tuple[pa.RecordBatch, pa.Array]:
        helper, keys = self._without_state, self._without_state.keys_of(stretch)
        if stretch.repairs is not None and stretch.repairs <= version.base_snapshot_id:
            # The state was initialised from files that contain this change, although the stream had not read it yet.
            old, since_offset = helper.rows_before(stretch.repairs, keys), version.base_offset
        else:
            old, since_offset = state.rows_of(version, keys), version.offset
        since = helper.changes_since(log, bucket, since_offset, stretch.first_offset, keys)
        return helper.completed(stretch, old, since)

    def _bring_up_to(
        self, state: ChangelogState, log: LogStore, bucket: int, start: int, *, began_with: int, began_empty: bool
    ) -> None:
        """Bring the state up to ``start``."""
        newest = state.newest()
        if newest is None:
            self._begin(state, log, bucket, start, began_with=began_with, began_empty=began_empty)
        elif newest.offset < start:
            # A reader reached this position, and crashed before it stored the state.
            state.advance(newest, _records(log, bucket, newest.offset, start, began_with), offset=start)

    def _begin(
        self, state: ChangelogState, log: LogStore, bucket: int, start: int, *, began_with: int, began_empty: bool
    ) -> None:
        snapshot, offset = None, 0
        # Files also have the rows of untracked commits, which a stream that began on the empty table has not read.
        if not began_empty or log.earliest_offsets().of(bucket) > 0:
            snapshot, offset = self._without_state.snapshot_at(bucket, start, began=began_with, log_id=log.log_id())

        def everything() -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
            if snapshot is not None:
                names = self._file_store.schema.arrow_schema.names
                for split in self._file_store.scan.plan(snapshot, buckets={bucket}).splits():
                    for rows in self._file_store.read.read(split, names):
                        yield rows, pa.repeat(pa.scalar(RowKind.INSERT, pa.int8()), rows.num_rows)
            yield from _records(log, bucket, offset, start, began_with)

        base = 0 if snapshot is None else snapshot.id
        state.advance(None, everything(), offset=start, base_snapshot_id=base, base_offset=offset)


def _resume(state: ChangelogState, start: int, changes: Sequence[tuple[pa.RecordBatch, pa.Array]], stop: int) -> None:
    """Apply the changes from ``start`` up to ``stop`` to the state, unless it contains them or lacks earlier ones."""
    newest = state.newest()
    if newest is not None and start <= newest.offset < stop:
        state.advance(newest, changes, offset=stop)


def _read(log: LogStore, bucket: int, start: int, end: int) -> Iterator[Stretch]:
    if start < end:
        yield from stretches(log.read(LogOffsets({bucket: start}), LogOffsets({bucket: end}), buckets=(bucket,)))


def _records(
    log: LogStore, bucket: int, start: int, end: int, began_with: int
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    new = (each for each in _read(log, bucket, start, end) if each.repairs is None or each.repairs > began_with)
    return together((each.rows, each.kinds) for each in new)


def _with_ends(parts: Iterable[Stretch], end: int) -> Iterator[tuple[Stretch, int]]:
    """Yield each stretch with the offset at which the next one starts, the last one with ``end``."""
    held: Stretch | None = None
    for each in parts:
        if held is not None:
            yield held, each.first_offset
        held = each
    if held is not None:
        yield held, end
