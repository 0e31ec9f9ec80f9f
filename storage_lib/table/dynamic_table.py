"""Both stores as one table: the facade that users hold.

    read     table.to_arrow(columns=..., filter=col("id") == 3)      table.stream().poll()
    write    table.append(rows)      table.overwrite(rows, partition={"dt": "2013-01-05"})
    look     table.describe()        table.snapshots()       table.files()
    care     table.compact()         table.drop_partitions([...])     table.expire_snapshots(retain_last=10)

Engines write from many tasks: the driver opens (``new_commit``), tasks write (``new_write``), the driver commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pyarrow as pa

from storage_lib.errors import (
    CommitConflictError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    note_outcome,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, CommitMessage
from storage_lib.file_store.compact import CompactionTask
from storage_lib.file_store.expire import ExpireResult
from storage_lib.file_store.orphan_files import OrphanResult
from storage_lib.file_store.plan import Plan
from storage_lib.file_store.schema_in_force import schema_in_force
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split
from storage_lib.io.after_commit import after_commit
from storage_lib.io.environment import Environment
from storage_lib.io.table_paths import MAIN_BRANCH, TablePaths
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.evolution.schema_changes import SchemaChange
from storage_lib.schema.filter.filter_text import Filter
from storage_lib.schema.options.table_options import (
    ScanNormalize,
    StartupMode,
    TableOptions,
    UntrackedScan,
)
from storage_lib.schema.placing.layout import LayoutChange, checked_layout_options
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.changelog.change_scan import ChangeMode
from storage_lib.table.changes.change_direction import of_one_direction
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.commit.table_overwrite import scope_of
from storage_lib.table.evolve.table_branches import TableBranches
from storage_lib.table.evolve.table_rewrite import REWRITE_ATTEMPTS
from storage_lib.table.input.input_rows import Rows
from storage_lib.table.inspect.commit_listing import COMMITS_MAX, CommitSummary
from storage_lib.table.inspect.table_health import TableHealth
from storage_lib.table.protocol.change_split import ChangeSplit
from storage_lib.table.protocol.identity import checked_identifier, checked_user, identity_of
from storage_lib.table.protocol.outcome import outcome, tells_outcome
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourceRange
from storage_lib.table.protocol.stream_position import StreamPosition
from storage_lib.table.protocol.table_address import TableAddress
from storage_lib.table.protocol.write_order import OverwriteScope, TableCommitMessage, WriteOrder
from storage_lib.table.read.planned_read import PlannedRead
from storage_lib.table.stream.hybrid_source import HybridSource
from storage_lib.table.table_parts import TableParts
from storage_lib.table.write.table_write import TableWrite


class DynamicTable:
    """One table of a catalog. Threads may share it; it remembers what it has read of the table's metadata.

    ``address`` tells another process where to load the same table from (None if only this process has it), ``under``
    makes the same table under another version of its schema, ``on_altered`` hears of a new one. One object speaks one
    version: ``alter`` and ``refresh`` return another.
    """

    def __init__(
        self,
        *,
        name: str,
        uuid: str,
        location: str,
        address: TableAddress | None,
        environment: Environment,
        schema: TableSchema,
        options: TableOptions,
        log: LogStore | None,
        branch: str = MAIN_BRANCH,
        under: Callable[[TableSchema], DynamicTable] | None = None,
        on_altered: Callable[[TableSchema], None] | None = None,
    ) -> None:
        self.name = name
        self.uuid = uuid
        self.location = location
        self.schema = schema
        self.options = options
        self.log = log
        self._address = address
        self._under = under
        self._on_altered = on_altered
        self.environment = environment
        parts = TableParts(
            name=name,
            uuid=uuid,
            location=location,
            branch=branch,
            environment=environment,
            schema=schema,
            options=options,
            log=log,
            store_options={} if address is None else address.options,
            of_newest_schema=lambda: self.refresh().branches,
            newest_commit=lambda: self.refresh()._commit,  # noqa: SLF001  a table too
            under=self._as_under,
        )
        self.file_store = parts.file_store
        self.lease = parts.lease
        self._input = parts.input
        self._partitions = parts.partitions
        self._commit: TableCommit = parts.commit
        self._eventual = parts.eventual
        self._overwrite = parts.overwrite
        self.tags = parts.tags
        self.consumers = parts.consumers
        self._time_travel = parts.time_travel
        self.branches: TableBranches = parts.branches
        self._rollback = parts.rollback
        self._change_scan = parts.change_scan
        self.system_tables = parts.system_tables
        self._alter = parts.alter
        self._rewrite = parts.rewrite
        self._lookup = parts.lookup
        self._batch_reads = parts.batch_reads
        self._streams = parts.streams
        self._task_writes = parts.task_writes
        self._statistics = parts.statistics
        self._care = parts.care
        self._inline_compaction = parts.inline_compaction
        self._description = parts.description
        self._commit_listing = parts.commit_listing
        self._health_check = parts.health_check

    @property
    def address(self) -> TableAddress:
        """Where other processes load this table from; ``InvalidInputError`` for a table in memory."""
        if self._address is None:
            message = (
                f"table {self.name} lives in this process's memory; use a WarehouseCatalog to share it with others"
            )
            raise InvalidInputError(message)
        return self._address

    def branch(self, name: str) -> DynamicTable:
        """The table as a branch of it shows it, to be read and written; it has no log.

        Raises ``NotFoundError`` for an unknown branch.
        """
        self.file_store.branches.check_exists(name)
        schema = schema_in_force(self.environment.file_io, TablePaths(self.location, name))
        if schema is None:
            message = f"branch {name!r} of table {self.name} was deleted just now"
            raise NotFoundError(message)
        return self._branch_under(name, schema)

    def _branch_under(self, name: str, schema: TableSchema) -> DynamicTable:
        options = self.options if schema.options == self.schema.options else TableOptions.parse(schema.options)
        address = self._address
        return DynamicTable(
            name=f"{self.name}$branch_{name}",
            uuid=f"{self.uuid}-branch-{name}",
            location=self.location,
            address=None if address is None else replace(address, name=f"{address.name}$branch_{name}"),
            environment=self.environment,
            schema=schema,
            options=options,
            log=None,
            branch=name,
            under=lambda other: self._branch_under(name, other),
        )

    @tells_outcome
    def alter(self, *changes: SchemaChange) -> DynamicTable:
        """Change columns, comments or options, all or none of ``changes``; returns the table as it is then.

            table = table.alter(AddColumn("discount", "DECIMAL(10, 2)", after="price"), RenameColumn("item", "article"))

        No file is rewritten: older ones are read under the new schema, column by column, by id. Readers and writers
        that have the table open go on with the schema they have. Raises ``InvalidInputError`` for a change that can't
        be, naming column and remedy; ``NotFoundError`` if the table is gone.
        """
        altered = self._alter.apply(changes)
        if altered.id == self.schema.id:
            return self
        with outcome(committed=True):
            if self._on_altered is not None:
                self._on_altered(altered)
            return self._as_under(altered)

    @tells_outcome
    def rewrite(
        self,
        *,
        primary_key: Sequence[str] = (),
        options: Mapping[str, str | None] | None = None,
        commit_user: str | None = None,
    ) -> DynamicTable:
        """Write every row anew: with a primary key, where there was none, or with another ``bucket`` or ``bucket-key``.

            table = table.rewrite(options={"bucket": "8"})

        One snapshot changes all at once; a log begins anew in a topic of its own, ``<topic>-v<n>``. Repeating what died
        finishes it. Writers wait meanwhile, and are then refused until they load the table again, as are streams at a
        position in the old log. Raises ``InvalidInputError`` for rows that share a key, and what can't be;
        ``CommitConflictError`` if others kept committing what needs no turn; as ``append``.
        """
        change = LayoutChange(primary_key=tuple(primary_key), options=checked_layout_options(self.name, options or {}))
        user = commit_user or self.environment.new_name()
        for attempt in range(1, REWRITE_ATTEMPTS + 1):
            current = self.refresh()
            try:
                schema = current._rewrite.run(change, commit_user=user)  # noqa: SLF001  a table too
            except CommitConflictError:
                if attempt == REWRITE_ATTEMPTS:
                    raise
                continue
            if schema.id == current.schema.id:
                return current
            with outcome(committed=True):
                if self._on_altered is not None:
                    self._on_altered(schema)
                return self._as_under(schema)
        raise AssertionError

    def refresh(self) -> DynamicTable:
        """The table under its newest schema; the same object if that is the one it has."""
        newest = self._alter.newest()
        return self if newest.id == self.schema.id else self._as_under(newest)

    def under_schema(self, schema_id: int) -> DynamicTable:
        """The table under one version of its schema; ``NotFoundError`` if there is none such."""
        return self if schema_id == self.schema.id else self._as_under(self._alter.version(schema_id))

    def _as_under(self, schema: TableSchema) -> DynamicTable:
        if self._under is None:
            message = f"table {self.name}: its schema is now version {schema.id}; load it again"
            raise InvalidInputError(message)
        return self._under(schema)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The table's columns as Arrow types."""
        return self.schema.arrow_schema

    @property
    def log_comes_first(self) -> bool:
        """Whether rows go to the log alone, visible at once, and ``tier_log`` makes the files of it."""
        return self._task_writes.log_comes_first

    @property
    def stream_row_kind_column(self) -> str | None:
        """The column of a stream read that says what each row means; None where all are inserts."""
        return self._streams.row_kind_column

    @property
    def stream_is_complete(self) -> bool:
        """Whether stream reads tell what each change took away, whatever ``scan.normalize`` says."""
        return self._streams.is_complete

    # --- read ---------------------------------------------------------------------------------------------------

    def read(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp_millis: int | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of one snapshot (default: the newest), a few batches in memory at a time, in no particular order.

        A snapshot is named by its id, by a tag, or by a moment (epoch milliseconds): the newest made up to then. It is
        read under the schema it was committed under.
        Raises ``InvalidInputError`` for unknown columns and misfit literals, ``NotFoundError`` or
        ``SnapshotExpiredError`` for the snapshot.
        """
        return self._planned_read(
            columns, filter, snapshot_id=snapshot_id, tag=tag, timestamp_millis=timestamp_millis
        ).stream()

    def _planned_read(
        self,
        columns: Sequence[str] | None,
        predicate: Filter | None,
        *,
        snapshot_id: int | None,
        tag: str | None,
        timestamp_millis: int | None,
    ) -> PlannedRead:
        snapshot = self._time_travel.snapshot(snapshot_id=snapshot_id, tag=tag, timestamp_millis=timestamp_millis)
        is_named = snapshot_id is not None or tag is not None or timestamp_millis is not None
        if is_named and self._under is not None and snapshot is not None and snapshot.schema_id != self.schema.id:
            older = self._as_under(self._alter.version(snapshot.schema_id))
            return older._batch_reads.planned(snapshot, columns, predicate)  # noqa: SLF001  a table too
        return self._batch_reads.planned(snapshot, columns, predicate)

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp_millis: int | None = None,
    ) -> pa.Table:
        """``read`` all at once, several splits side by side."""
        return self._planned_read(
            columns, filter, snapshot_id=snapshot_id, tag=tag, timestamp_millis=timestamp_millis
        ).to_table()

    def plan(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp_millis: int | None = None,
    ) -> Plan:
        """What has to be read: pass ``splits()`` to tasks and each to ``read_split`` with the same filter."""
        snapshot = self._time_travel.snapshot(snapshot_id=snapshot_id, tag=tag, timestamp_millis=timestamp_millis)
        return self._batch_reads.plan(snapshot, filter)

    def read_split(
        self,
        split: Split,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
    ) -> Iterator[pa.RecordBatch]:
        """The matching rows of one split of ``plan``."""
        return self._batch_reads.read_split(split, columns, filter)

    def lookup(
        self,
        keys: Rows | Sequence[Mapping[str, object]],
        *,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp_millis: int | None = None,
    ) -> pa.Table:
        """The rows that there are of some primary keys, ``[{"id": 3}, ...]`` or Arrow rows, in the keys' order.

        Opens only files that can hold them. The snapshot is named as for ``read``. Raises ``InvalidInputError`` for
        what is no key of this table.
        """
        snapshot = self._time_travel.snapshot(snapshot_id=snapshot_id, tag=tag, timestamp_millis=timestamp_millis)
        return self._lookup.lookup(snapshot, keys, columns)

    def changes(
        self,
        *,
        start_snapshot_id: int | None = None,
        end_snapshot_id: int | None = None,
        start_timestamp_millis: int | None = None,
        end_timestamp_millis: int | None = None,
        mode: str | ChangeMode = ChangeMode.NET,
    ) -> pa.RecordBatchReader:
        """What changed after one snapshot up to another (default: the newest), or in ``[start, end)`` of time.

        Columns as ``stream``: the table's and the row kind. ``mode`` "net": at most one change a key; "every": what
        each commit changed, in order within a bucket. See ``ChangeScan``.
        """
        splits = self.plan_changes(
            start_snapshot_id=start_snapshot_id,
            end_snapshot_id=end_snapshot_id,
            start_timestamp_millis=start_timestamp_millis,
            end_timestamp_millis=end_timestamp_millis,
            mode=mode,
        )
        batches = (batch for split in splits for batch in self.read_changes(split))
        if self.schema.crosses_partitions and mode == ChangeMode.NET:
            kind_column = self._change_scan.arrow_schema.names[-1]
            batches = (
                of_one_direction(batch, kind_column, retracts=retracts)
                for retracts in (True, False)
                for split in splits
                for batch in self.read_changes(split)
            )
        return pa.RecordBatchReader.from_batches(self._change_scan.arrow_schema, batches)

    def snapshots_between(self, start_timestamp_millis: int, end_timestamp_millis: int) -> tuple[int, int]:
        """The snapshots made in ``[start, end)``: after the first id returned, up to the second; equal: none.

        Give them to ``changes`` to read the same again however late. Raises ``SnapshotExpiredError`` if some of these
        may have been expired, ``InvalidInputError`` for times that go backwards.
        """
        return self._change_scan.range_of_times(start_timestamp_millis, end_timestamp_millis)

    def plan_changes(
        self,
        *,
        start_snapshot_id: int | None = None,
        end_snapshot_id: int | None = None,
        start_timestamp_millis: int | None = None,
        end_timestamp_millis: int | None = None,
        mode: str | ChangeMode = ChangeMode.NET,
    ) -> tuple[ChangeSplit, ...]:
        """``changes`` as work for tasks: one picklable split a bucket, each for ``read_changes``.

        Raises ``InvalidInputError`` for a range that is none, ``SnapshotExpiredError`` or ``NotFoundError`` for a
        snapshot that there is not.
        """
        return self._change_scan.plan_range(
            snapshots=(start_snapshot_id, end_snapshot_id),
            times=(start_timestamp_millis, end_timestamp_millis),
            mode=mode,
        )

    def read_changes(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """The changes of one split of ``plan_changes``, with their row kinds."""
        return self._change_scan.read(split)

    def stream(
        self,
        *,
        position: StreamPosition | None = None,
        startup: str | StartupMode | None = None,
        timestamp_millis: int | None = None,
        normalize: str | ScanNormalize | None = None,
        on_untracked: str | UntrackedScan | None = None,
        state_directory: str | None = None,
    ) -> HybridSource:
        """The table as a stream of changes: from ``position``, else as ``startup`` (default: ``log.scan``) says.

        ``startup`` "latest" starts with the first change after this call.

        ``normalize`` "lookup" (default: ``scan.normalize``) tells every change with the row before it. Then the
        snapshots since the stream's position have to be kept: register it as a consumer. "state" does so, too, out of
        the rows that the stream itself has heard, which it keeps in ``state_directory`` (a path or URL that is this
        stream's alone; None: on this disk until the stream is gone), and needs no snapshot but the one it begins with.
        ``on_untracked`` "warn" logs
        a warning at each commit that the stream is not told of, "fail" ends the stream before it hands out anything
        later, by ``UntrackedCommitError`` (default: ``scan.on-untracked``).
        """
        source = self.stream_plan(
            position=position,
            startup=startup,
            timestamp_millis=timestamp_millis,
            normalize=normalize,
            on_untracked=on_untracked,
            state_directory=state_directory,
        )
        source.fix_start()
        return source

    def stream_plan(
        self,
        *,
        position: StreamPosition | None = None,
        startup: str | StartupMode | None = None,
        timestamp_millis: int | None = None,
        normalize: str | ScanNormalize | None = None,
        on_untracked: str | UntrackedScan | None = None,
        state_directory: str | None = None,
        whole_commits: bool = False,
    ) -> HybridSource:
        """As ``stream``, for engines that keep positions themselves: no start is looked up before it is asked for.

        With ``whole_commits`` it never hands out a part of a commit alone, except of an eventual log, which has none.
        """
        return self._streams.open(
            position=position,
            startup=startup,
            timestamp_millis=timestamp_millis,
            normalize=normalize,
            on_untracked=on_untracked,
            state_directory=state_directory,
            whole_commits=whole_commits,
        )

    def keeps_stream_state(self, normalize: str | None) -> bool:
        """Whether a stream with this ``normalize`` keeps rows for itself; ``InvalidInputError`` for what is no such."""
        return self._streams.keeps_state(normalize)

    # --- write --------------------------------------------------------------------------------------------------

    @tells_outcome
    def append(
        self,
        rows: Rows,
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
        change_tracking: bool | None = None,
        source: SourceRange | None = None,
        based_on: int | None = None,
    ) -> Snapshot | None:
        """Insert, update and delete rows (by ``_row_kind``; without it: upsert) in one commit; None for no rows.

        The same ``(commit_user, commit_identifier)`` commits once, however often this is called. Compacts afterwards
        where that is due, unless the table is ``write-only``. ``source``: these are all rows of that range, even if
        there is none (``commit_write``). ``based_on``: the rows were made of this snapshot's; refused by
        ``CommitConflictError`` if the table has changed since (``new_commit``).
        Raises ``InvalidInputError`` before anything is visible; ``LeaseLostError`` and ``UnavailableError`` are to be
        retried.
        """
        self._input.check(rows)
        user, identifier = self._identity(commit_user, commit_identifier)
        if self.log_comes_first:
            # A repetition would be seen in the log.
            earlier = self._commit.committed(user, identifier)
            if earlier is not None:
                return earlier
        order = self.new_commit(commit_user=user, tracked=change_tracking, based_on=based_on)
        if source is not None:
            order = self._commit.in_turn_for(order, partial(SourceOffsets.advanced, by=[source]))
        return self._write(order, rows, identifier, source)

    @tells_outcome
    def overwrite(
        self,
        rows: Rows,
        *,
        partition: Mapping[str, object] | None = None,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Replace partitions by ``rows``: those the rows are in, or all that have the values of ``partition``.

        ``partition={}`` replaces the whole table. Of an append-only table's overwrites no stream ever hears. Raises as
        ``append``, and ``CommitConflictError`` (untracked only)
        when another commit replaced the same files meanwhile.
        """
        self._input.check(rows)
        user, identifier = self._identity(commit_user, commit_identifier)
        order = self.new_commit(commit_user=user, tracked=change_tracking, overwrite=scope_of(partition))
        return self._write(order, rows, identifier)

    @tells_outcome
    def new_commit(
        self,
        *,
        commit_user: str,
        tracked: bool | None = None,
        overwrite: OverwriteScope | None = None,
        based_on: int | None = None,
        in_turn: bool = False,
    ) -> WriteOrder:
        """Start a commit on the driver, before any task: takes the turn where one is needed, puts the log in order.

        End it by ``commit_write`` or ``abort_write``. ``based_on``: the rows are made of those that this snapshot (0:
        the empty table) shows, as an UPDATE's are, and would take back what was committed since. Raises
        ``CommitConflictError`` if anything was, ``UnavailableError`` if the turn can't be had in time. ``in_turn``: of
        any table, so that rows can be made of what the order's base snapshot shows while nobody else appends.
        """
        checked_user(self.name, commit_user)
        is_tracked = self.options.change_tracking if tracked is None else tracked
        if overwrite is not None and self.schema.is_append_only:
            if tracked:
                message = (
                    f"table {self.name} is append-only, so its streams can't tell what an overwrite or a drop takes "
                    "away; run it with change_tracking=False"
                )
                raise InvalidInputError(message)
            is_tracked = False
        if overwrite is None and (in_turn or based_on is not None):
            return self._commit.open_based_on(based_on, commit_user=commit_user, tracked=is_tracked)
        if overwrite is None:
            return self._commit.open(commit_user=commit_user, tracked=is_tracked)
        self._partitions.predicate_of(overwrite)
        return WriteOrder(
            commit_user=commit_user,
            tracked=is_tracked,
            base_snapshot_id=self.file_store.snapshots.latest_id(),
            overwrite=overwrite,
        )

    def committed(self, commit_user: str, commit_identifier: int) -> Snapshot | None:
        """The snapshot that this identity was committed as, None if it was not yet; for who would rather not repeat it.

        Ends the log transactions that it may have died before.
        """
        return self._commit.committed(commit_user, checked_identifier(self.name, commit_identifier))

    def new_write(self, order: WriteOrder, *, task_index: int | None = None) -> TableWrite:
        """The writer of one task. Of several each needs an index of its own, for they may have rows of one bucket."""
        return self._task_writes.open(order, task_index=task_index)

    def answer_changes(self, order: WriteOrder, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Rows (with kinds) that are added to a query's answer or taken from it, in any order -> changes to ``write``.

        For a table that holds the answer by its primary key; all rows of a key have to be among them. They are held
        against the rows of the snapshot upon which ``order`` was opened. Raises ``InvalidInputError`` (a
        ``SharedKeyError``) where two rows of the answer would share a key.
        """
        return self._task_writes.answer_changes(order, batches)

    @tells_outcome
    def commit_write(
        self,
        order: WriteOrder,
        messages: Sequence[TableCommitMessage],
        commit_identifier: int,
        *,
        watermark: int | None = None,
        defers_tiering: bool = False,
        sources: Sequence[SourceRange] = (),
    ) -> Snapshot | None:
        """Make what the tasks wrote one snapshot, and visible in the log; gives the turn back whatever happens.

        Exactly once by ``(order.commit_user, commit_identifier)``, an integer of 0 or more. None if there was nothing
        to commit.
        With ``sources`` the snapshot tells that all records of these ranges are in the table; ``CommitConflictError``
        if one does not begin where ``source_offsets`` ends.
        With ``defers_tiering``, rows that are in the log already (``log_comes_first``) are left to the next
        ``tier_log``: None, and no snapshot.
        """
        try:
            commit_identifier = checked_identifier(self.name, commit_identifier)
        except InvalidInputError:
            self.abort_write(order, messages)
            raise
        if defers_tiering and self.log_comes_first and order.writes_log:
            self._commit.abort(order, messages)
            return None
        if order.overwrite is not None:
            return self._overwrite.commit(order, messages, commit_identifier)
        advanced = partial(SourceOffsets.advanced, by=sources) if sources else None
        return self._commit.commit(order, messages, commit_identifier, watermark=watermark, sources=advanced)

    def source_offsets(self, source: str) -> LogOffsets | None:
        """Up to where a foreign source is in the newest snapshot; None if nothing of it is.

        A rollback brings back the offsets of the snapshot it goes back to.
        """
        return self._commit.source_offsets(self.file_store.snapshots.latest()).of(source)

    def abort_write(self, order: WriteOrder, messages: Sequence[TableCommitMessage]) -> None:
        """Undo what the tasks wrote and give the turn back."""
        self._commit.abort(order, messages)

    def check_input(self, schema: pa.Schema) -> None:
        """Refuse rows of this Arrow schema that could never be written; ``InvalidInputError`` with the remedy."""
        self._input.check_columns(schema)

    @tells_outcome
    def tier_log(
        self,
        *,
        compact: bool = True,
        skip_expired: bool = False,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Bring the files up to the log, of a table with ``log.consistency=eventual``; None if they are.

        The snapshot holds the records and their offsets, so that each gets into the files exactly once, whoever calls
        this, however often and wherever it dies. Streams do it every ``log.tier-interval``, batch writes at their end.
        Compacts afterwards where that is due, unless ``compact`` is False or the table ``write-only``. With
        ``skip_expired`` it goes on behind records that the log's retention has deleted before they got into the files.

        Raises ``InvalidInputError`` for any other table, ``LogOffsetsExpiredError`` for records that are gone (nothing
        is committed), ``UnavailableError`` and ``LeaseLostError`` as ``append``.
        """
        if self._eventual is None:
            message = (
                f"table {self.name}: files and log are written together, so there is nothing to tier; tier_log is for "
                "tables with log.consistency=eventual"
            )
            raise InvalidInputError(message)
        user, identifier = self._identity(commit_user, commit_identifier)
        snapshot = self._eventual.tier_log(commit_user=user, commit_identifier=identifier, skip_expired=skip_expired)
        if snapshot is not None and compact:
            self._compact_changed(snapshot)
        return snapshot

    # --- care ---------------------------------------------------------------------------------------------------

    @tells_outcome
    def compact(
        self,
        *,
        partition: Mapping[str, object] | None = None,
        full: bool = True,
        buckets: Iterable[tuple[Mapping[str, object], int]] | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Merge the sorted runs of every bucket into one, or with ``full=False`` those that are due.

        None if there was nothing to do. ``buckets``: only these, each by its whole partition and its number; who
        compacts others meanwhile is no conflict.
        Never stops a writer. A bucket whose files another commit replaced meanwhile is left to the next compaction;
        raises ``CommitConflictError`` if that is all of them: the work is dropped, run it again. Raises
        ``InvalidInputError`` for a bucket whose rows can't be merged (a sum too large for its column), after the others
        were compacted.
        """
        return self._care.compact(
            partition=partition,
            full=full,
            buckets=buckets,
            commit_user=commit_user,
            commit_identifier=commit_identifier,
        )

    def compact_after(
        self, written: Snapshot, messages: Sequence[TableCommitMessage], *, only_crowded: bool = False
    ) -> None:
        """Compact what is due in the buckets of a commit just made, as a snapshot of its own; ``append`` does it.

        Raises no ``StorageError``: a lost race costs the work only, anything else is a ``RuntimeWarning``. Does nothing
        for a ``write-only`` table. ``only_crowded`` leaves all to others but buckets at their stop trigger.
        """
        buckets = {(each.partition, each.bucket) for message in messages for each in message.files}
        # A tracked overwrite writes where rows go, too, of which no task has files.
        buckets |= self._inline_compaction.buckets_of(written)
        if self.options.write_only or not buckets:
            return
        if only_crowded:
            self._inline_compaction.relieve(buckets)
        else:
            self._inline_compaction.compact(written, buckets)

    def plan_compaction(
        self,
        partition: Mapping[str, object] | None = None,
        *,
        full: bool = True,
        buckets: Iterable[tuple[Mapping[str, object], int]] | None = None,
    ) -> list[CompactionTask]:
        """What ``compact`` would do, one picklable task a bucket, for an engine to run side by side."""
        return self._care.plan_compaction(partition, full=full, buckets=buckets)

    def run_compaction(self, task: CompactionTask) -> CommitMessage | None:
        """Do one task; its files are durable but not yet part of the table."""
        return self._care.run_compaction(task)

    @tells_outcome
    def commit_compaction(
        self,
        messages: Sequence[CommitMessage],
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Commit what ``run_compaction`` returned, but for buckets that others changed first; their files are deleted.

        Raises ``CommitConflictError`` if none is left.
        """
        return self._care.commit_compaction(messages, commit_user=commit_user, commit_identifier=commit_identifier)

    @tells_outcome
    def drop_partitions(
        self,
        partitions: Sequence[Mapping[str, object]],
        *,
        change_tracking: bool = False,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Drop every partition that has the values of one of ``partitions``; tracked, downstream sees the deletions.

        Raises ``NotFoundError`` naming a spec that no partition matches; nothing is dropped then.
        """
        user, identifier = self._identity(commit_user, commit_identifier)
        earlier = self._commit.committed(user, identifier)
        if earlier is not None:
            return earlier
        self._care.refuse_missing(partitions)
        if change_tracking:
            order = self.new_commit(commit_user=user, tracked=True, overwrite=OverwriteScope.of(*partitions))
            return self._write(order, self.arrow_schema.empty_table(), identifier)
        return self._care.drop_partitions(partitions, commit_user=user, commit_identifier=identifier)

    @tells_outcome
    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Note what the newest snapshot holds (rows, bounds, distinct values), for engines that plan by it.

        Reads every row once. None for a table without a commit; see ``system_table("statistics")``.
        """
        user, identifier = self._identity(commit_user, commit_identifier)
        return self._statistics.analyze(columns, commit_user=user, commit_identifier=identifier)

    @tells_outcome
    def rollback_to(
        self,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp_millis: int | None = None,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Make the table show again what an older snapshot shows, in a new snapshot; None if it does so already.

        With ``change_tracking`` (default: where the table has a log or a changelog producer) downstream streams get the
        net change.
        Raises ``NotFoundError`` or ``SnapshotExpiredError`` for the snapshot, and as ``append``.
        """
        return self._rollback.rollback_to(
            snapshot_id=snapshot_id,
            tag=tag,
            timestamp_millis=timestamp_millis,
            change_tracking=change_tracking,
            commit_user=commit_user,
            commit_identifier=commit_identifier,
        )

    @tells_outcome
    def remove_orphan_files(self, *, older_than: timedelta = timedelta(days=1), dry_run: bool = False) -> OrphanResult:
        """Delete files of this table, all branches included, that no snapshot, tag or branch needs; or only list them.

        What is younger than ``older_than`` stays: it may belong to a commit in the making, so give it more time than
        the longest write takes.
        """
        return self._care.remove_orphan_files(older_than=older_than, dry_run=dry_run)

    @tells_outcome
    def expire_snapshots(self, *, retain_last: int = 10, older_than_millis: int | None = None) -> ExpireResult:
        """Drop all but the newest ``retain_last`` snapshots, or of these only those made before a time (epoch ms).

        Data never expires by this: only what no kept snapshot, tag or consumer needs is deleted. Snapshots whose
        changes are not yet in the log stay as well, until the next writer has published them.
        """
        return self._care.expire_snapshots(retain_last=retain_last, older_than_millis=older_than_millis)

    # --- look ---------------------------------------------------------------------------------------------------

    def describe(self, partition: Mapping[str, object] | None = None) -> dict[str, str]:
        """DESCRIBE TABLE EXTENDED, of the table or one partition; see ``TableDescription``."""
        return self._description.describe(partition)

    def commits(self, *, after: int = 0, limit: int = COMMITS_MAX) -> tuple[CommitSummary, ...]:
        """The first ``limit`` commits after a snapshot's id that have not expired, oldest first."""
        return self._commit_listing.commits(after=after, limit=limit)

    def turn_holder(self) -> str | None:
        """Who has the writers' turn now; None if nobody does."""
        return self.lease.holder()

    def check_still_there(self) -> None:
        """Raise ``NotFoundError`` if the table was dropped, or dropped and made anew, since it was opened."""
        self.file_store.check_still_there()

    def health(self) -> TableHealth:
        """How the table is, at a glance; cheap to ask again and again. Says nothing of the log: see ``describe``."""
        return self._health_check.look()

    def snapshots(self) -> pa.Table:
        """One row a snapshot, oldest first."""
        return self._description.snapshots()

    def system_table(self, name: str) -> pa.Table:
        """What is known of the table, as a table: "snapshots", "files", "audit_log", ...; ``NotFoundError`` lists all.

        Also ``db.table$snapshots`` in a catalog and in Spark.
        """
        return self.system_tables.read(name).read_all()

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """One row a live data file."""
        return self._description.files(snapshot_id)

    def partitions(self) -> pa.Table:
        """One row a partition."""
        return self._description.partitions()

    def close(self) -> None:
        """Release the log's connections."""
        if self.log is not None:
            self.log.close()

    def _write(
        self, order: WriteOrder, rows: Rows, commit_identifier: int, source: SourceRange | None = None
    ) -> Snapshot | None:
        try:
            task = self.new_write(order)
            try:
                task.write(rows)
                message = task.prepare_commit()
            except BaseException:
                task.abort()
                raise
        except BaseException as error:
            if self.log_comes_first and order.writes_log:
                # Some of the rows may be in the log, where they are visible at once.
                note_outcome(error, committed=None)
            with suppress(StorageError):
                self.abort_write(order, [])
            raise
        snapshot = self.commit_write(order, [message], commit_identifier, sources=[source] if source else [])
        if snapshot is not None:
            if message.files and order.overwrite is None:
                self.compact_after(snapshot, [message])
            else:
                self._compact_changed(snapshot)
        return snapshot

    def _compact_changed(self, snapshot: Snapshot) -> None:
        """Compact what is due in the buckets that a snapshot changed, as after an append."""
        with after_commit(f"table {self.name}: compacting what is due"):
            self._compact_due(snapshot)

    def _compact_due(self, snapshot: Snapshot) -> None:
        buckets = {(entry.partition, entry.bucket) for entry in self.file_store.scan.delta(snapshot)}
        if buckets and not self.options.write_only:
            self._inline_compaction.compact(snapshot, buckets)

    def _identity(self, commit_user: str | None, commit_identifier: int | None) -> tuple[str, int]:
        if commit_identifier == BATCH_COMMIT_IDENTIFIER:
            message = (
                f"table {self.name}: commit_identifier {commit_identifier} stands for a commit that has none, so it "
                "would be committed again and again; give a smaller one"
            )
            raise InvalidInputError(message)
        return identity_of(self.name, self.environment, commit_user, commit_identifier)
