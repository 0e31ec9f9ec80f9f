"""Adds a primary key or changes the buckets: every row is rewritten, and one snapshot replaces all files.

    lease ─▶ base snapshot ─▶ rows of the base ─▶ files of the new layout        a few batches in memory at a time
                                                 schema of the new layout       not in force yet
                                                 its topic                      empty: streams read the snapshot first
                             snapshot on top of the base: old files out, new files in      ◀── DECIDED

A crash before the snapshot leaves the old table, with a schema and a topic that the next ALTER skips or reuses; a crash
after it leaves the new table. The lease blocks appends. Commits that need no lease (compactions, overwrites, appends
that commute) may come first: then the rewrite is repeated. Every commit by a process that has the table open under the
old layout is refused (``FileStore.check_layout``), so of a stalled writer and the rewrite only one creates the next
snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import polars as pl
import pyarrow as pa

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    StorageError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, Committable
from storage_lib.file_store.snapshot.schema_in_force import schema_in_force, waits_for_rewriting
from storage_lib.io.table_directory.table_paths import MAIN_BRANCH
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.progress.operation import operation
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.table_options import LogConsistency, TableOptions
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.schema.placing.layout import TOPIC_OPTION, LayoutChange, as_before, topics_of, with_layout
from storage_lib.schema.table_schema import BUCKET_UNAWARE
from storage_lib.table.commit.table_overwrite import deletions_of
from storage_lib.table.protocol.snapshot_log_properties import REWROTE, SnapshotLogProperties
from storage_lib.table.protocol.write_context import OverwriteScope, TableCommitMessage, WriteContext

if TYPE_CHECKING:
    from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.file_store.split import Split
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.commit.table_commit import TableCommit
    from storage_lib.table.protocol.lease import Lease
    from storage_lib.table.protocol.table_context import TableContext
    from storage_lib.table.write.task_writes import TaskWrites

REWRITE_ATTEMPTS = 5
_DUPLICATES_SHOWN = 5


class RewrittenTable(Protocol):
    """The table under its new layout, before the layout is in force."""

    @property
    def context(self) -> TableContext:
        """The context with both stores under the new layout."""

    @property
    def tasks(self) -> TaskWrites:
        """Opens the writers of the new files."""


class TableRewrite:
    """Rewrites one table; ``under`` opens the same table under another schema."""

    def __init__(
        self,
        context: TableContext,
        *,
        commit: TableCommit,
        under: Callable[[TableSchema], RewrittenTable],
    ) -> None:
        self._table = context.name
        self._environment = context.environment
        self._paths = context.paths
        self._schema = context.schema
        self._options = context.options
        self._file_store = context.file_store
        self._commit = commit
        self._leases = context.leases
        self._has_log = context.log is not None
        self._under = under
        self._history = SchemaHistory(context.environment.file_io, context.paths)

    def run(self, change: LayoutChange, *, commit_user: str) -> TableSchema:
        """Rewrite all rows; return the schema of the new layout, or the current one if nothing changes.

        Raises ``CommitConflictError`` if another commit came first (nothing has changed: repeat it with the newest
        schema), ``InvalidInputError`` for an impossible change and for rows that share a key, ``UnavailableError``.
        """
        self._file_store.check_still_there()
        self._check(change)
        write_context = self._commit.open(commit_user=commit_user, tracked=False, purpose="rewrite", is_difference=True)
        lease = write_context.lease
        if lease is None:
            message = f"table {self._table}: a rewriting without a lease is a defect of this library"
            raise AssertionError(message)
        with self._commit.lease_held(lease):
            in_force = schema_in_force(self._environment.file_io, self._paths)
            if in_force is None or in_force.id != self._schema.id:
                message = f"table {self._table} was altered just now; rewrite it again"
                raise CommitConflictError(message)
            altered = self._altered(change)
            if altered is self._schema:
                return altered
            base = None
            if write_context.base_snapshot_id is not None:
                base = self._file_store.snapshots.load(write_context.base_snapshot_id)
            self._rewrite(self._under(altered), altered, base, lease, commit_user)
            return altered

    def give_up(self) -> None:
        """Cancel an interrupted rewrite: ``ALTER`` continues from the schema before it.

        Waits for a running rewrite. Raises as ``TableCommit.open``.
        """
        newest = self._history.latest()
        if newest is None or not waits_for_rewriting(newest, self._file_store.snapshots.latest()):
            return
        write_context = self._commit.open(
            commit_user=self._environment.new_name(), tracked=False, purpose="alter", is_difference=True
        )
        with self._commit.lease_held(write_context.lease):
            newest = self._history.latest()
            in_force = schema_in_force(self._environment.file_io, self._paths)
            if newest is None or in_force is None or in_force.id == newest.id:
                return
            # With a snapshot under our lease, a stalled writer that lost its lease cannot create the one after its
            # base.
            self._commit.mark(write_context)
            topics = topics_of([self._history.load(each) for each in self._history.ids()])
            now = self._environment.clock.now_millis()
            self._history.append(as_before(in_force, schema_id=newest.id + 1, topics=topics, time_millis=now))

    def _check(self, change: LayoutChange) -> None:
        if self._paths.branch != MAIN_BRANCH:
            message = f"table {self._table} is a branch, whose files the table shares; rewrite the table itself"
            raise InvalidInputError(message)
        if self._options.log_consistency is LogConsistency.EVENTUAL:
            message = (
                f"table {self._table}: with log.consistency={LogConsistency.EVENTUAL} rows go to the log before "
                "anything is committed, so some would be left behind in the old topic. CREATE TABLE another one, and "
                "INSERT the rows of this one into it"
            )
            raise InvalidInputError(message)
        if self._has_log and TOPIC_OPTION not in self._schema.options:
            message = (
                f"table {self._table}: its log is in log.system={self._options.effective_log_system}, of which "
                "this library can't begin another; CREATE TABLE another one, and INSERT the rows of this one into it"
            )
            raise InvalidInputError(message)
        if self._has_log and (change.options or {}).get("bucket") == str(BUCKET_UNAWARE):
            message = (
                f"table {self._table} has a log, of which each bucket is a partition, and the number of dynamic "
                f"buckets (bucket={BUCKET_UNAWARE}) grows; declare a number of buckets"
            )
            raise InvalidInputError(message)
        if change.primary_key and self._options.sequence_field:
            message = (
                f"table {self._table}: option sequence.field says which of several rows of a key wins, which is "
                "decided when a table is made; CREATE TABLE another one, and INSERT the rows of this one into it"
            )
            raise InvalidInputError(message)

    def _altered(self, change: LayoutChange) -> TableSchema:
        """Return the new schema; that of an interrupted attempt if it is equal."""
        schemas = [self._history.load(each) for each in self._history.ids()]
        newest = schemas[-1]
        now = self._environment.clock.now_millis()
        try:
            if newest.id != self._schema.id:
                topics = topics_of(schemas[:-1])
                again = with_layout(self._schema, change, schema_id=newest.id, topics=topics, time_millis=0)
                if _without_time(again) == _without_time(newest):
                    return newest
            altered = with_layout(
                self._schema, change, schema_id=newest.id + 1, topics=topics_of(schemas), time_millis=now
            )
            TableOptions.parse(altered.options)
        except InvalidInputError as error:
            message = f"table {self._table}: {error}"
            raise InvalidInputError(message) from error
        return altered

    def _rewrite(
        self, target: RewrittenTable, altered: TableSchema, base: Snapshot | None, lease: Lease, commit_user: str
    ) -> None:
        write_context = WriteContext(
            commit_user=commit_user,
            tracked=False,
            base_snapshot_id=None if base is None else base.id,
            overwrite=OverwriteScope.of({}),
            is_difference=True,
        )
        write = target.tasks.open(write_context)
        count = 0
        splits = self._splits(base)
        total = sum(len(split.files) for split in splits)
        try:
            with operation("rewrite", self._table, total=total, unit="files") as files:
                for split in splits:
                    for rows in self._file_store.read.read(split, self._schema.arrow_schema.names):
                        write.write(rows)
                        count += rows.num_rows
                    files.advance(len(split.files))
                written = write.prepare_commit()
        except BaseException:
            write.abort()
            raise
        try:
            if altered.primary_keys != self._schema.primary_keys and _row_count(written) != count:
                self._refuse_duplicates(base, altered, written)
            self._append(altered)
            if target.context.log is not None:
                target.context.log.create()
            self._create_snapshot(target, altered, base, written, lease, commit_user)
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            with suppress(StorageError):
                target.context.file_store.abort(written.files)
            raise

    def _append(self, altered: TableSchema) -> None:
        if not self._history.append(altered) and self._history.load(altered.id) != altered:
            message = f"table {self._table} was altered just now; rewrite it again"
            raise CommitConflictError(message)

    def _create_snapshot(
        self,
        target: RewrittenTable,
        altered: TableSchema,
        base: Snapshot | None,
        written: TableCommitMessage,
        lease: Lease,
        commit_user: str,
    ) -> None:
        part = SnapshotLogProperties(
            tracked=False,
            lease_number=lease.number,
            offsets=None if target.context.log is None else LogOffsets(log_id=target.context.log.log_id()),
        )
        replaced = deletions_of(self._file_store.scan.entries(base))

        def guard(latest: Snapshot | None) -> None:
            self._leases.check(lease)
            if (0 if latest is None else latest.id) != (0 if base is None else base.id):
                message = (
                    f"table {self._table}: another commit came between, so the rewritten rows are not the "
                    "newest. Nothing has changed; rewrite it again"
                )
                raise CommitConflictError(message)
            if self._history.latest_id() != altered.id:
                message = f"table {self._table} was altered just now; rewrite it again"
                raise CommitConflictError(message)

        target.context.file_store.commit.commit(
            Committable(
                commit_user=commit_user,
                commit_identifier=BATCH_COMMIT_IDENTIFIER,
                messages=(*written.files, *replaced),
                properties={REWROTE: str(altered.id)},
            ),
            guard=guard,
            properties_of=lambda latest: {
                **part.to_properties(),
                **self._commit.source_offsets(latest).to_properties(),
            },
            is_overwrite=True,
        )

    def _splits(self, base: Snapshot | None) -> Sequence[Split]:
        if base is None:
            return ()
        return self._file_store.scan.plan(base).splits(self._options.source_split_target_size_bytes)

    def _rows(self, base: Snapshot | None) -> Iterator[pa.RecordBatch]:
        for split in self._splits(base):
            yield from self._file_store.read.read(split, self._schema.arrow_schema.names)

    def _refuse_duplicates(self, base: Snapshot | None, altered: TableSchema, written: TableCommitMessage) -> None:
        """Raise ``InvalidInputError`` with some repeated keys of one bucket, whose keys are held in memory."""
        left = {(each.partition, each.bucket): _row_count_of(each.increment.new_files) for each in written.files}
        for rows in self._rows(base):
            for partition, bucket, indices in group_rows(rows, altered):
                left[partition, bucket] = left.get((partition, bucket), 0) - len(indices)
        crowded = min(place for place, rest in left.items() if rest < 0)
        keys: list[pa.RecordBatch] = []
        for rows in self._rows(base):
            for partition, bucket, indices in group_rows(rows, altered):
                if (partition, bucket) == crowded:
                    keys.append(rows.select(list(altered.primary_keys)).take(pa.array(indices)))
        counted = (
            pl.DataFrame(pl.from_arrow(pa.Table.from_batches(keys)))
            .group_by(list(altered.primary_keys))
            .agg(pl.len().alias("_rows"))
            .filter(pl.col("_rows") > 1)
            .sort(list(altered.primary_keys))
            .head(_DUPLICATES_SHOWN)
        )
        shown = "; ".join(
            f"{', '.join(f'{name}={row[name]!r}' for name in altered.primary_keys)} in {row['_rows']} rows"
            for row in counted.iter_rows(named=True)
        )
        too_many = -sum(rest for rest in left.values())
        message = (
            f"table {self._table}: ({', '.join(altered.primary_keys)}) can't be the primary key, for {too_many} rows "
            f"have the key of another one: {shown}. Nothing has changed; delete the rows that are too many, or add a "
            "column to the key"
        )
        raise InvalidInputError(message)


def _row_count(written: TableCommitMessage) -> int:
    return sum(_row_count_of(each.increment.new_files) for each in written.files)


def _row_count_of(files: Sequence[DataFileMeta]) -> int:
    return sum(each.row_count for each in files)


def _without_time(schema: TableSchema) -> bytes:
    return replace(schema, time_millis=0).to_json()
