"""Stream read of a table: the newest snapshot, then the log from that snapshot's offsets.

    snapshot S ── split 0 ── split 1 ── … ─▶ log from the offsets stored in S ─▶ …

All changes after S are in the log at or after these offsets and none before, so no change is lost or returned twice;
records that repair S or an older snapshot are skipped, because S contains them already. For a table without a log the
source follows its snapshots: it reads the rows that each one appended, or, if rows are merged with stored ones, the
difference that the snapshot made. The source's only state is a position: engines request the latest position, plan the
read between two positions, and run it anywhere, any number of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.split import Split
from storage_lib.file_store.store import FileStore
from storage_lib.io.environment import Clock
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.options.table_options import StartupMode
from storage_lib.schema.placing.layout import layout_of
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.changelog.change_scan import ChangeMode, ChangeScan
from storage_lib.table.changelog.changelog_normalizer import ChangelogNormalizer
from storage_lib.table.changelog.snapshot_changes import SnapshotChanges
from storage_lib.table.changelog.stateful_normalizer import StatefulNormalizer
from storage_lib.table.changes.change_direction import of_one_direction
from storage_lib.table.protocol.stream_position import StreamPosition
from storage_lib.table.protocol.stream_split import (
    AddedSplit,
    ChangedSplit,
    DifferenceSplit,
    LogSplit,
    SnapshotSplit,
    StreamSplit,
)
from storage_lib.table.stream.log_offset_resolver import LogOffsetResolver, tracked_snapshots
from storage_lib.table.stream.rewrite_watch import RewriteWatch
from storage_lib.table.stream.untracked_watch import UntrackedWatch


class HybridSource:
    """A stream of one table: a snapshot, then the changes after it.

    Only ``poll`` uses ``position``; the other methods are functions of positions. With a ``normalizer``, changes after
    the first snapshot have their pre-images; with a ``watch``, the stream reports untracked commits. With
    ``whole_commits`` it stops only at ends of commits.
    """

    def __init__(
        self,
        *,
        table: str,
        table_uuid: str,
        schema: TableSchema,
        file_store: FileStore,
        log: LogStore | None,
        changes: SnapshotChanges,
        change_scan: ChangeScan,
        row_kind_column: str | None,
        split_target_bytes: int,
        startup: StartupMode,
        timestamp_millis: int | None,
        position: StreamPosition | None = None,
        normalizer: ChangelogNormalizer | StatefulNormalizer | None = None,
        watch: UntrackedWatch | None = None,
        clock: Clock,
        whole_commits: bool = False,
    ) -> None:
        if startup is StartupMode.FROM_TIMESTAMP and timestamp_millis is None and position is None:
            message = f"table {table}: log.scan=from-timestamp needs log.scan.timestamp-millis (epoch milliseconds)"
            raise InvalidInputError(message)
        self._table = table
        self._table_uuid = table_uuid
        self._schema = schema
        self._file_store = file_store
        self._log = log
        self._changes = changes
        self._change_scan = change_scan
        self._normalizer = normalizer
        self._watch = watch
        self._rewritten = RewriteWatch(table=table, schema=schema, file_store=file_store, clock=clock)
        self._row_kind_column = row_kind_column
        self._whole_commits = whole_commits
        self._split_target_bytes = split_target_bytes
        self._startup = startup
        self._timestamp_millis = timestamp_millis
        self._places = LogOffsetResolver(table=table, file_store=file_store, clock=clock)
        self.position = position

    def __repr__(self) -> str:
        at = "not started" if self.position is None else f"at {self.position.to_json()}"
        return f"<HybridSource of {self._table}, {at}>"

    @property
    def arrow_schema(self) -> pa.Schema:
        """The table's columns and, last, the row kind (a string) if rows have one."""
        if self._row_kind_column is None:
            return self._schema.arrow_schema
        return self._schema.arrow_schema.append(pa.field(self._row_kind_column, pa.string(), nullable=False))

    def initial_position(self) -> StreamPosition:
        """Return the position at which the stream starts, by ``log.scan``."""
        self._file_store.check_layout(self._file_store.snapshots.latest())
        layout = layout_of(self._schema)
        return replace(self._initial_position(), table_uuid=self._table_uuid, layout=layout)

    def _initial_position(self) -> StreamPosition:
        history = self._file_store.snapshots
        newest = history.latest_id()
        if self._startup is StartupMode.FULL:
            if newest is not None:
                return StreamPosition(snapshot_id=newest, split_index=0)
            if self._log is None:
                return StreamPosition(snapshot_id=0)
            return replace(self._in_log(0, LogOffsets(log_id=self._log.log_id()), 0), began_empty=True)
        if self._log is None:
            after = newest or 0
            if self._startup is StartupMode.FROM_TIMESTAMP:
                after = history.last_before(self._timestamp_millis or 0)
            return StreamPosition(snapshot_id=after)
        if self._startup is StartupMode.LATEST:
            return self._in_log(0, self._log.latest_offsets(), newest or 0)
        since = self._timestamp_millis or 0
        offsets = self._places.since(self._log, since)
        return self._in_log(0, offsets, 0 if self._watch is None else history.last_before(since))

    def fix_start(self) -> None:
        """Let ``poll`` start at the current end of the table with ``log.scan=latest``, rather than at its first call.

        Other starts are the same at any time.
        """
        if self.position is None and self._startup is StartupMode.LATEST:
            self.position = self.initial_position()

    def latest_position(
        self, start: StreamPosition, *, max_rows: int | None = None, until: LogOffsets | None = None
    ) -> StreamPosition:
        """Return how far a reader at ``start`` can read now, limited to about ``max_rows`` rows; ``start`` if nothing
        is new.

        ``until``: commits of the log are returned only if they end before these offsets. A snapshot is returned in
        whole splits, and a table without a log in whole snapshots, at least one of them. Raises
        ``UntrackedCommitError`` at an untracked commit with ``scan.on-untracked=fail``, and ``InvalidInputError`` for a
        position in another table.
        """
        self._refuse_others(start)
        if start.split_index is not None:
            return self._latest_in_snapshot(start, start.split_index, max_rows)
        if start.offsets is not None:
            return self._latest_in_log(start, start.offsets, max_rows, until)
        return self._latest_snapshot(start, max_rows)

    def plan(self, start: StreamPosition, end: StreamPosition) -> list[StreamSplit]:
        """Plan the read between two positions as splits for any number of tasks."""
        self._refuse_others(start)
        if start.split_index is not None:
            splits = self._splits_of(start.snapshot_id)
            stop = len(splits) if end.split_index is None else end.split_index
            rows: list[StreamSplit] = [SnapshotSplit(split=split) for split in splits[start.split_index : stop]]
            return rows if end.offsets is None else [*rows, *self._first_states(end.offsets, start.snapshot_id)]
        if start.offsets is not None:
            self._places.refuse_other_log(self._followed_log, start.offsets)
            later = end.offsets or start.offsets
            return [
                LogSplit(
                    bucket=bucket,
                    start=start.offsets.of(bucket),
                    end=offset,
                    repaired_snapshot_id=start.snapshot_id,
                    began_empty=start.began_empty,
                )
                for bucket, offset in sorted(later.next_offsets.items())
                if offset > start.offsets.of(bucket)
            ]
        return [
            split
            for snapshot in tracked_snapshots(self._file_store.snapshots, start.snapshot_id, end.snapshot_id)
            for split in self._changed_by(snapshot)
        ]

    def read(self, split: StreamSplit) -> Iterator[pa.RecordBatch]:
        """Read the rows of one split with their kinds, in order within each bucket."""
        match split:
            case SnapshotSplit():
                names = [field.name for field in self._schema.fields]
                for rows in self._file_store.read.read(split.split, names):
                    yield self._with_kinds(rows, pa.repeat(pa.scalar(0, pa.int8()), rows.num_rows))
            case LogSplit():
                yield from self._read_log(split)
            case AddedSplit() | DifferenceSplit():
                for batch in self._read_changed(split):
                    if split.retracts is None or self._row_kind_column is None:
                        yield batch
                    else:
                        yield of_one_direction(batch, self._row_kind_column, retracts=split.retracts)

    def _read_changed(self, split: ChangedSplit) -> Iterator[pa.RecordBatch]:
        if isinstance(split, DifferenceSplit):
            yield from self._change_scan.read(split.split)
            return
        changes = self._changes if self._normalizer is None else self._normalizer
        for rows, kinds in changes.read_split(split.split):
            yield self._with_kinds(rows, kinds)

    def poll(self) -> pa.Table | None:
        """Return the changes since the last call, or at the first call since the start; None if there are none now."""
        if self.position is None:
            self.position = self.initial_position()
        end = self.latest_position(self.position)
        if end == self.position:
            return None
        batches = [batch for split in self.plan(self.position, end) for batch in self.read(split)]
        self.position = end
        return pa.Table.from_batches(batches, schema=self.arrow_schema)

    def _latest_in_snapshot(self, start: StreamPosition, index: int, max_rows: int | None) -> StreamPosition:
        splits = self._splits_of(start.snapshot_id)
        rows = 0
        while index < len(splits) and (max_rows is None or rows == 0 or rows + splits[index].row_count <= max_rows):
            rows += splits[index].row_count
            index += 1
        if index < len(splits):
            return replace(start, split_index=index)
        if self._log is None:
            return replace(start, split_index=None)
        offsets = self._places.after(self._log, start.snapshot_id)
        reached = self._in_log(start.snapshot_id, offsets, start.snapshot_id)
        return replace(reached, table_uuid=start.table_uuid, layout=start.layout)

    def _refuse_others(self, position: StreamPosition) -> None:
        if position.table_uuid not in (None, self._table_uuid):
            message = (
                f"table {self._table}: the position is one in another table, or in one of this name that was dropped "
                "since. Start the stream again without it (a query in Spark: with a checkpoint of its own)"
            )
            raise InvalidInputError(message)
        self._rewritten.refuse_before(position)

    def _first_states(self, offsets: LogOffsets, snapshot_id: int) -> list[StreamSplit]:
        """Return splits without rows, which initialise the normalizer's state while the snapshot exists."""
        if self._normalizer is None or not self._normalizer.keeps_state:
            return []
        places = [(bucket, offsets.of(bucket)) for bucket in self._schema.bucket_numbers]
        return [
            LogSplit(bucket=bucket, start=place, end=place, repaired_snapshot_id=snapshot_id)
            for bucket, place in places
        ]

    def _in_log(self, snapshot_id: int, offsets: LogOffsets, watched: int) -> StreamPosition:
        known = None if self._watch is None else watched
        return StreamPosition(snapshot_id=snapshot_id, offsets=offsets, watched_snapshot_id=known)

    def _latest_in_log(
        self, start: StreamPosition, offsets: LogOffsets, max_rows: int | None, until: LogOffsets | None
    ) -> StreamPosition:
        newest = self._followed_log.latest_offsets()
        self._places.refuse_other_log(self._followed_log, offsets)
        ahead = tuple(bucket for bucket, offset in offsets.next_offsets.items() if newest.of(bucket) < offset)
        if ahead:
            # A transaction is open, or the position is of another log: this raises in the latter case instead of
            # waiting forever.
            self._followed_log.read(offsets, offsets, buckets=ahead)
        watched, has_warned = None, False
        if self._watch is not None:
            outlook = self._watch.check(start, offsets, newest)
            newest, watched, has_warned = outlook.end, outlook.watched_snapshot_id, outlook.has_warned
        behind = {bucket: end for bucket, end in newest.next_offsets.items() if end > offsets.of(bucket)}
        if not behind:
            # After a rewrite the old topic receives no records; without this check we would poll it forever.
            self._rewritten.check()
            return replace(start, watched_snapshot_id=watched) if has_warned else start
        if self._whole_commits:
            if until is not None:
                behind = {bucket: min(end, until.of(bucket)) for bucket, end in behind.items()}
            behind = self._places.commits_between(offsets, behind, max_rows)
            if not behind:
                return replace(start, watched_snapshot_id=watched) if has_warned else start
        elif max_rows is not None:
            share = max(1, max_rows // len(behind))
            behind = {bucket: min(end, offsets.of(bucket) + share) for bucket, end in behind.items()}
        return replace(start, offsets=offsets.advanced_to(behind), watched_snapshot_id=watched)

    def _latest_snapshot(self, start: StreamPosition, max_rows: int | None) -> StreamPosition:
        newest = self._file_store.snapshots.latest_id() or 0
        if newest < start.snapshot_id:
            message = (
                f"table {self._table} has {newest} snapshots, but the position is one after snapshot "
                f"{start.snapshot_id}: it is another table's, or was taken before the table was recreated. Start the "
                "stream again without it"
            )
            raise InvalidInputError(message)
        rows, reached = 0, start.snapshot_id
        while reached < newest and (max_rows is None or rows < max_rows):
            following = self._file_store.snapshots.load(reached + 1)
            self._rewritten.refuse_after(following)
            if self._watch is not None and self._watch.stops_at(following):
                if reached == start.snapshot_id:
                    raise self._watch.error_of(following)
                break
            reached += 1
            for snapshot in tracked_snapshots(self._file_store.snapshots, reached - 1, reached):
                rows += sum(each.split.row_count for each in self._changed_by(snapshot))
        return replace(start, snapshot_id=reached)

    def _changed_by(self, snapshot: Snapshot) -> Sequence[ChangedSplit]:
        splits: Sequence[ChangedSplit]
        if self._change_scan.is_covered_by_its_files(snapshot):
            splits = [AddedSplit(split=split) for split in self._changes.splits(snapshot)]
        else:
            changes = self._change_scan.plan(snapshot.id - 1, snapshot.id, ChangeMode.EVERY)
            splits = [DifferenceSplit(split=split) for split in changes]
        # A restored or overwritten content may have a key in another of its dynamic buckets.
        has_moved = self._schema.has_dynamic_buckets and snapshot.commit_kind is CommitKind.OVERWRITE
        if not (self._schema.crosses_partitions or has_moved):
            return splits
        return [replace(split, retracts=retracts) for retracts in (True, False) for split in splits]

    def _read_log(self, part: LogSplit) -> Iterator[pa.RecordBatch]:
        if self._normalizer is not None:
            for rows, kinds in self._normalizer.read_log(
                self._followed_log,
                part.bucket,
                part.start,
                part.end,
                began_with=part.repaired_snapshot_id,
                began_empty=part.began_empty,
            ):
                yield self._with_kinds(rows, kinds)
            return
        repaired = part.repaired_snapshot_id
        batches = self._followed_log.read(
            LogOffsets({part.bucket: part.start}), LogOffsets({part.bucket: part.end}), buckets=(part.bucket,)
        )
        for batch in batches:
            if not batch.rows.num_rows:
                continue
            rows, kinds = batch.rows, batch.kinds
            if repaired and batch.repairs.null_count < len(batch.repairs):
                keep = pc.fill_null(pc.greater(batch.repairs, repaired), fill_value=True)
                rows, kinds = rows.filter(keep), kinds.filter(keep)
            yield self._with_kinds(rows, kinds)

    @property
    def _followed_log(self) -> LogStore:
        """The log of a position with offsets; ``InvalidInputError`` if the table has no log."""
        if self._log is None:
            message = (
                f"table {self._table} has no log, but the position is one in a log: it is another table's, or was "
                "taken before the table was recreated. Start the stream again without it"
            )
            raise InvalidInputError(message)
        return self._log

    def _with_kinds(self, rows: pa.RecordBatch, kinds: pa.Array) -> pa.RecordBatch:
        if self._row_kind_column is None:
            return rows
        symbols = pa.array(ROW_KIND_SYMBOLS).take(kinds)
        return pa.RecordBatch.from_arrays([*rows.columns, symbols], schema=self.arrow_schema)

    def _splits_of(self, snapshot_id: int) -> tuple[Split, ...]:
        snapshot = self._file_store.snapshots.load(snapshot_id)
        return tuple(self._file_store.scan.plan(snapshot).splits(self._split_target_bytes))
