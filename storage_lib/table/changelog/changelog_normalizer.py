"""Completes a stream of upserts with pre-images looked up in the files (``scan.normalize=lookup``).

    snapshot S, offsets 17 ── log 17 … 40 ── 41 42 43 … ─▶
    └── what was there ──┴── changed since ─┴─ changes to complete

The files of the last snapshot whose offsets are at or before a change contain the log up to these offsets; later
changes of the same keys are read from the log again. So no state is kept between two reads, or between two stretches of
one read: each is a function of positions and can be repeated anywhere. A reader that is up to date starts at such
offsets and reads nothing twice.

The pre-images of a record that repairs a snapshot are the rows before that snapshot: its files contain the change
already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import FIRST_ID
from storage_lib.file_store.split import Split
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import LogBatch, LogStore
from storage_lib.schema.options.table_options import LogConsistency
from storage_lib.table.changelog.complete_appends import BYTES_AT_ONCE, ROWS_AT_ONCE, CompleteAppends, together
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.changes.update_before import complete_changes, joined, one_batch
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.read.point_lookup import PointLookup

_UNKNOWN, _OTHER_LOG = -2, -1
"""Values in place of an offset, less than any offset, in the order in which snapshots may have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Consecutive changes of one bucket with the same base; ``repairs``: the repaired snapshot (None: new changes)."""

    first_offset: int
    repairs: int | None
    rows: pa.RecordBatch
    kinds: pa.Array


class ChangelogNormalizer:
    """Reads the changes of one table's streams with their pre-images. Stateless, so threads may share it."""

    keeps_state = False

    def __init__(
        self,
        context: TableContext,
        *,
        appends: CompleteAppends,
        lookup: PointLookup,
    ) -> None:
        self._table = context.name
        self._primary_keys = tuple(context.schema.primary_keys)
        self._file_store = context.file_store
        self._appends = appends
        self._lookup = lookup
        self._ends_transactions = context.options.log_consistency is LogConsistency.TRANSACTIONAL

    def read_split(self, split: Split) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Read a snapshot's appended rows of one bucket with kinds (int8) and pre-images; for tables without a log."""
        return self._appends.read_split(split)

    def read_log(
        self,
        log: LogStore,
        bucket: int,
        start: int,
        end: int,
        *,
        began_with: int,
        began_empty: bool = False,  # noqa: ARG002  rows are looked up in the table, whatever the stream has read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Read the log of one bucket from ``start`` up to ``end`` for a stream that ``began_with`` a snapshot (or 0).

        Repairs of that snapshot or an older one are skipped: the stream has read these changes already. Raises
        ``SnapshotExpiredError`` if the snapshot to look up in has expired, ``LogOffsetsExpiredError`` if the records
        have.
        """
        log_id = log.log_id()
        for stretch in stretches(log.read(LogOffsets({bucket: start}), LogOffsets({bucket: end}), buckets=(bucket,))):
            if stretch.repairs is not None and stretch.repairs <= began_with:
                continue
            keys = self.keys_of(stretch)
            snapshot, offset = self.snapshot_at(bucket, stretch.first_offset, began=began_with, log_id=log_id)
            old = self.rows_before(snapshot if stretch.repairs is None else stretch.repairs, keys)
            # For a reader that is up to date, only the end of a transaction may lie in between.
            is_near = stretch.first_offset - offset <= (1 if self._ends_transactions and offset else 0)
            since = [] if is_near else self.changes_since(log, bucket, offset, stretch.first_offset, keys)
            rows, kinds = self.completed(stretch, old, since)
            if rows.num_rows:
                yield rows, kinds

    def keys_of(self, stretch: Stretch) -> pa.Table:
        """Return the primary key's columns of the stretch's rows."""
        return pa.Table.from_batches([stretch.rows]).select(self._primary_keys)

    def completed(
        self, stretch: Stretch, old: pa.Table, since: Sequence[tuple[pa.RecordBatch, pa.Array]]
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Return rows and kinds of the stretch with pre-images: the ``old`` rows after the changes ``since``."""
        rows, kinds = joined([*since, (stretch.rows, stretch.kinds)])
        changes = complete_changes(rows, kinds, old, self._primary_keys)
        changes = changes.since(sum(len(each) for _, each in since))
        return changes.rows, changes.kinds

    def rows_before(self, base: Snapshot | int | None, keys: pa.Table) -> pa.Table:
        """Return the rows of ``keys`` in a snapshot, or, for a snapshot id, as they were before that snapshot."""
        if not isinstance(base, int):
            return self._lookup.rows_of(base, keys)
        snapshot = self._file_store.snapshots.load(base)
        own = {entry.file.file_name for entry in self._file_store.scan.delta(snapshot)}
        return self._lookup.rows_of(snapshot, keys, left_out=own)

    def changes_since(
        self, log: LogStore, bucket: int, start: int, stop: int, keys: pa.Table
    ) -> list[tuple[pa.RecordBatch, pa.Array]]:
        """Return the last change of each key from ``start`` up to ``stop``, in at most one batch."""
        if start >= stop:
            return []
        wanted = comparable_frame(keys).unique()
        newest: list[tuple[pa.RecordBatch, pa.Array]] = []
        batches = log.read(LogOffsets({bucket: start}), LogOffsets({bucket: stop}), buckets=(bucket,))
        for rows, kinds in together((batch.rows, batch.kinds) for batch in batches if batch.rows.num_rows):
            newest = [self._newest(*joined([*newest, (rows, kinds)]), wanted)]
        return newest

    def _newest(self, rows: pa.RecordBatch, kinds: pa.Array, wanted: pl.DataFrame) -> tuple[pa.RecordBatch, pa.Array]:
        table = pa.Table.from_batches([rows])
        frame = comparable_frame(table.select(self._primary_keys)).with_row_index("index")
        frame = frame.join(wanted, on=wanted.columns, how="semi")
        last_rows = frame.unique(subset=wanted.columns, keep="last", maintain_order=True)["index"].to_arrow()
        return one_batch(table.take(last_rows)), kinds.take(last_rows)

    def snapshot_at(self, bucket: int, offset: int, *, began: int, log_id: str | None) -> tuple[Snapshot | None, int]:
        """Return the first snapshot with the last offset up to ``offset``, and that offset; None: the empty table.

        The first, because changes of later ones with the same offset are not in the log: the stream never received
        them, unless it ``began`` with one of these. If the log was recreated, it is the last snapshot before that.
        """
        history = self._file_store.snapshots
        newest, earliest = history.latest_id(), history.earliest_id()
        if newest is None or earliest is None:
            return None, 0

        def offset_after(snapshot_id: int) -> int:
            return self._offset_after(snapshot_id, bucket, earliest, log_id)

        last = first_where(earliest, newest, lambda each: offset_after(each) > offset) - 1
        found = offset_after(last) if last >= earliest else _UNKNOWN
        if found == _OTHER_LOG:
            return history.load(last), 0
        if found == _UNKNOWN:
            if earliest == FIRST_ID:
                return None, 0
            message = (
                f"table {self._table}: the snapshot that the stream's position in bucket {bucket} (offset {offset}) "
                "follows upon was expired, so the rows before its changes can't be looked up any more. Register the "
                "stream as a consumer (table.consumers.create), or keep snapshots longer; start it again with "
                "log.scan=full, or read on with scan.normalize=none"
            )
            raise SnapshotExpiredError(message)
        low = max(earliest, min(began, last))
        first = first_where(low, last, lambda each: offset_after(each) >= found)
        return history.load(first), found

    def _offset_after(self, snapshot_id: int, bucket: int, earliest: int, log_id: str | None) -> int:
        """Return the log offset of a bucket after a snapshot; snapshots of other writers have none and are skipped."""
        for each in range(snapshot_id, earliest - 1, -1):
            part = SnapshotLogProperties.of_snapshot(self._file_store.snapshots.load(each))
            if part is not None and part.offsets is not None:
                return part.offsets.of(bucket) if part.offsets.is_of(log_id) else _OTHER_LOG
        return _UNKNOWN


def first_where(low: int, high: int, is_so: Callable[[int], bool]) -> int:
    """Return the first number in ``low … high`` for which the monotone ``is_so`` holds, or ``high + 1`` if none."""
    end = high + 1
    while low < end:
        middle = (low + end) // 2
        if is_so(middle):
            end = middle
        else:
            low = middle + 1
    return low


def stretches(batches: Iterator[LogBatch]) -> Iterator[Stretch]:
    """Group the changes into few stretches, cut between batches and where the repaired snapshot changes."""
    held: list[Stretch] = []
    count = size = 0
    for piece in (piece for batch in batches for piece in _pieces(batch)):
        if held and (held[0].repairs != piece.repairs or count >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE):
            yield _whole(held)
            held, count, size = [], 0, 0
        held.append(piece)
        count += len(piece.kinds)
        size += piece.rows.nbytes
    if held:
        yield _whole(held)


def _pieces(batch: LogBatch) -> Iterator[Stretch]:
    count = batch.rows.num_rows
    if not count:
        return
    repairs = pc.fill_null(batch.repairs, _UNKNOWN).to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.append(True, repairs[1:] != repairs[:-1])).tolist()
    for start, stop in zip(starts, [*starts[1:], count], strict=True):
        yield Stretch(
            first_offset=batch.offsets[start].as_py(),
            repairs=None if repairs[start] == _UNKNOWN else int(repairs[start]),
            rows=batch.rows.slice(start, stop - start),
            kinds=batch.kinds.slice(start, stop - start),
        )


def _whole(pieces: Sequence[Stretch]) -> Stretch:
    rows, kinds = joined([(each.rows, each.kinds) for each in pieces])
    return Stretch(first_offset=pieces[0].first_offset, repairs=pieces[0].repairs, rows=rows, kinds=kinds)
