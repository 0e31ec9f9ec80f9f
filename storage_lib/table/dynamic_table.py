"""The table that users hold: a façade over the file store and the log.

    read        table.to_arrow(columns=..., filter="id = 3")      table.stream().poll()
    write       table.append(rows)     table.overwrite(rows, partition={"dt": "2013-01-05"})
    metadata    table.describe()       table.inspect.snapshots()
    upkeep      table.compact()        table.maintenance.expire_snapshots(retain_last=10)
    history     table.tags             table.branches             table.consumers

Engines read and write from many tasks: ``new_read`` and ``new_write``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, Unpack

import polars as pl
import pyarrow as pa

from storage_lib.built_once import built_once
from storage_lib.errors import CommitConflictError, InvalidInputError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import MAIN_BRANCH
from storage_lib.log_store.log_store import LogStore
from storage_lib.progress.operation import operation, report_to
from storage_lib.progress.progress import ProgressOption
from storage_lib.schema.encoding.moment import Moment, optional_millis
from storage_lib.schema.evolution.schema_changes import SchemaChange
from storage_lib.schema.filter.filter_text import Filter
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from storage_lib.schema.options.table_options import (
    ScanNormalize,
    StartupMode,
    TableOptions,
    UntrackedScan,
)
from storage_lib.schema.placing.layout import LayoutChange, checked_layout_options
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.assembly.table_reads import TableReads
from storage_lib.table.assembly.table_writes import TableWrites
from storage_lib.table.builders.read_builder import ReadBuilder
from storage_lib.table.builders.write_builder import WriteBuilder
from storage_lib.table.changelog.change_scan import ChangeMode
from storage_lib.table.commit.rejected_commit import with_rejected
from storage_lib.table.commit.table_overwrite import scope_of
from storage_lib.table.evolve.table_alter import TableAlter
from storage_lib.table.evolve.table_branches import TableBranches
from storage_lib.table.evolve.table_consumers import TableConsumers
from storage_lib.table.evolve.table_rewrite import REWRITE_ATTEMPTS, TableRewrite
from storage_lib.table.evolve.table_rollback import TableRollback
from storage_lib.table.evolve.table_tags import TableTags
from storage_lib.table.input.frames import Frame, arrow_rows
from storage_lib.table.input.input_rows import ADD_NULLS, Rows, record_batches, row_count
from storage_lib.table.inspect.description import Description
from storage_lib.table.inspect.shown import shown_schema, shown_table
from storage_lib.table.namespaces.table_inspection import TableInspection
from storage_lib.table.namespaces.table_maintenance import TableMaintenance
from storage_lib.table.protocol.identity import write_identity_of
from storage_lib.table.protocol.outcome import outcome, reports_outcome
from storage_lib.table.protocol.source_offsets import SourceRange
from storage_lib.table.protocol.stream_position import StreamPosition
from storage_lib.table.protocol.table_address import TableAddress
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.read.batch_reads import BatchReads
from storage_lib.table.read.planned_read import PlannedRead
from storage_lib.table.read.read_as import ReadOf, as_duckdb, as_pandas
from storage_lib.table.stream.hybrid_source import HybridSource
from storage_lib.table.verbs.changed_columns import refuse_reused_names
from storage_lib.table.verbs.row_verbs import Matched, NotMatched, NotMatchedBySource, RowVerbs

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_Given = ParamSpec("_Given")
_Verb: TypeAlias = Callable[Concatenate["DynamicTable", _Given], Snapshot | None]


def _commits_once(verb: _Verb[_Given]) -> _Verb[_Given]:
    """Let a verb return the snapshot of an earlier commit under its identity, before it looks at its rows.

    They may not fit any longer, because the columns were altered after that commit. And a log that is written first
    would contain them twice.
    """

    @wraps(verb)
    def once(self: DynamicTable, /, *arguments: _Given.args, **named: _Given.kwargs) -> Snapshot | None:
        earlier = self._earlier(named.get("commit_user"), named.get("commit_identifier"))
        return verb(self, *arguments, **named) if earlier is None else earlier

    return once


class DynamicTable:
    """One table of a catalog. Threads may share an object; it caches the table's metadata.

    ``address`` locates the table for other processes (None for a table in memory), ``under`` opens it under another
    version of its schema, and ``on_altered`` is called with each new version. An object has one version of the schema:
    ``alter`` and ``refresh`` return another object.
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
        self.environment = environment
        self._address = address
        self._under = under
        self._on_altered = on_altered
        self.context = TableContext.of(
            name=name,
            uuid=uuid,
            location=location,
            branch=branch,
            environment=environment,
            schema=schema,
            options=options,
            log=log,
            store_options={} if address is None else address.options,
        )

    # --- parts, each built at its first use ---------------------------------------------------------------------

    @built_once
    def tags(self) -> TableTags:
        return TableTags(self.context)

    @built_once
    def consumers(self) -> TableConsumers:
        return TableConsumers(self.context)

    @built_once
    def branches(self) -> TableBranches[DynamicTable]:
        return TableBranches(
            self.context,
            tags=self.tags,
            restore=self._writes.restore,
            tracks=self._writes.has_streams,
            of_newest_schema=lambda: self.refresh().branches,
            open_branch=self._branch_under,
        )

    @built_once
    def maintenance(self) -> TableMaintenance:
        return TableMaintenance(self.context, self._reads, self._writes)

    @built_once
    def inspect(self) -> TableInspection:
        return TableInspection(self.context, self._reads, self._writes)

    @built_once
    def _reads(self) -> TableReads:
        return TableReads(self.context)

    @built_once
    def _writes(self) -> TableWrites:
        return TableWrites(self.context, self._reads, newest=lambda: self.refresh()._writes)  # noqa: SLF001  a table too

    @built_once
    def _row_verbs(self) -> RowVerbs:
        return RowVerbs(
            self.context,
            input_rows=self._writes.input,
            old_rows=self._reads.old_rows,
            writes=self._writes.direct,
            newest_schema=lambda: self._schema_changes.newest(),  # noqa: PLW0108  appends need none
        )

    @property
    def _row_verbs_now(self) -> RowVerbs:
        """Verbs that write stored rows again, with all columns of the table, also those that others have added."""
        newest = self.refresh()
        refuse_reused_names(self.name, opened=self.schema, newest=newest.schema)
        return newest._row_verbs  # noqa: SLF001  of the same table

    @built_once
    def _rewriting(self) -> TableRewrite:
        return TableRewrite(
            self.context,
            commit=self._writes.commit,
            under=lambda other: self._as_under(other)._writes,  # noqa: SLF001  a table too
        )

    @built_once
    def _schema_changes(self) -> TableAlter:
        # A lambda, because refresh() needs no rewriting.
        return TableAlter(self.context, give_up_rewriting=lambda: self._rewriting.give_up())  # noqa: PLW0108

    def __repr__(self) -> str:
        return shown_table(self.name, self.context.branch, self.schema)

    def _repr_html_(self) -> str:
        return shown_schema(repr(self), self.schema)

    @property
    def address(self) -> TableAddress:
        """The address at which other processes load this table; ``InvalidInputError`` for a table in memory."""
        if self._address is None:
            message = (
                f"table {self.name} exists in the memory of this process only; use a WarehouseCatalog to share it with "
                "others"
            )
            raise InvalidInputError(message)
        return self._address

    @property
    def arrow_schema(self) -> pa.Schema:
        """The table's columns as Arrow types."""
        return self.schema.arrow_schema

    @property
    def definition(self) -> MaterializedTableDefinition | None:
        """The query of a materialized table with its settings; None for an ordinary table."""
        return self.options.definition

    # --- read ---------------------------------------------------------------------------------------------------
    def read(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: Moment | None = None,
    ) -> pa.RecordBatchReader:
        """Read the rows of one snapshot (default: the newest) in no particular order, with a few batches in memory at a
        time.

        Name a snapshot by its id, a tag, or a time, which selects the newest snapshot committed up to then. A time is a
        ``datetime`` with a time zone, ISO 8601 text with an offset, or milliseconds since 1970. Rows have the columns
        of the snapshot's schema. Raises ``InvalidInputError`` for unknown columns and for literals of the wrong type,
        ``NotFoundError`` or ``SnapshotExpiredError`` for the snapshot.
        """
        return self._planned_read(columns, filter, snapshot_id=snapshot_id, tag=tag, timestamp=timestamp).stream()

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: Moment | None = None,
    ) -> pa.Table:
        """Read all rows at once, otherwise as ``read``. Several splits are read in parallel."""
        return self._planned_read(columns, filter, snapshot_id=snapshot_id, tag=tag, timestamp=timestamp).to_table()

    def _planned_read(
        self,
        columns: Sequence[str] | None,
        predicate: Filter | None,
        *,
        snapshot_id: int | None,
        tag: str | None,
        timestamp: Moment | None,
    ) -> PlannedRead:
        reads, snapshot = self._reads_at(snapshot_id=snapshot_id, tag=tag, timestamp=timestamp)
        return reads.planned(snapshot, columns, predicate)

    def _reads_at(
        self, *, snapshot_id: int | None, tag: str | None, timestamp: Moment | None
    ) -> tuple[BatchReads, Snapshot | None]:
        """Reads under the schema of a named snapshot, or under this object's schema for the newest one."""
        reads = self._reads
        snapshot = reads.time_travel.snapshot(snapshot_id=snapshot_id, tag=tag, timestamp=timestamp)
        is_named = snapshot_id is not None or tag is not None or timestamp is not None
        if is_named and self._under is not None and snapshot is not None and snapshot.schema_id != self.schema.id:
            reads = self.refresh(schema_id=snapshot.schema_id)._reads  # noqa: SLF001  a table too
        return reads.batch_reads, snapshot

    def to_pandas(self, **read: Unpack[ReadOf]) -> pd.DataFrame:
        """Read as ``to_arrow`` into a pandas frame (extra ``pandas``); integers and booleans have nullable types."""
        return as_pandas(self.to_arrow(**read))

    def to_polars(self, **read: Unpack[ReadOf]) -> pl.DataFrame:
        """Read as ``to_arrow`` into a Polars frame."""
        return pl.DataFrame(self.to_arrow(**read))

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None, **read: Unpack[ReadOf]
    ) -> duckdb.DuckDBPyRelation:
        """Read as ``to_arrow`` into a relation of ``connection``, by default DuckDB's own (extra ``duckdb``)."""
        return as_duckdb(self.to_arrow(**read), connection)

    def count(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: Moment | None = None,
    ) -> int:
        """Count the rows that ``read`` returns for these arguments.

        Without a filter, the count comes from metadata if no rows have to be merged; otherwise one column is read.
        """
        reads, snapshot = self._reads_at(snapshot_id=snapshot_id, tag=tag, timestamp=timestamp)
        return reads.count(snapshot, filter)

    def lookup(
        self,
        keys: Rows | Sequence[Mapping[str, object]],
        *,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: Moment | None = None,
    ) -> pa.Table:
        """Return the existing rows of some primary keys, ``[{"id": 3}, ...]`` or Arrow rows, in the order of the keys.

        Only files that may contain the keys are opened. The snapshot is named as for ``read``. Raises
        ``InvalidInputError`` for keys that are not keys of this table.
        """
        snapshot = self._reads.time_travel.snapshot(snapshot_id=snapshot_id, tag=tag, timestamp=timestamp)
        return self._reads.lookup.lookup(snapshot, keys, columns)

    def changes(
        self,
        *,
        start_snapshot_id: int | None = None,
        end_snapshot_id: int | None = None,
        start_timestamp: Moment | None = None,
        end_timestamp: Moment | None = None,
        mode: str | ChangeMode = ChangeMode.NET,
    ) -> pa.RecordBatchReader:
        """Read the changes after one snapshot up to another (default: the newest), or in the time interval ``[start,
        end)``.

        The columns are those of ``stream``: the table's and the row kind. ``mode`` "net" returns at most one change per
        key, or for a key that moved to another partition or dynamic bucket a deletion and an addition; "every" returns
        the changes of each commit, in order within a bucket. Where keys can move, the retractions of a commit come
        before its additions.
        """
        scan = self._reads.change_scan
        splits = scan.plan_range(
            snapshots=(start_snapshot_id, end_snapshot_id),
            times=(
                optional_millis(start_timestamp, "start_timestamp"),
                optional_millis(end_timestamp, "end_timestamp"),
            ),
            mode=mode,
        )
        return pa.RecordBatchReader.from_batches(scan.arrow_schema, scan.read_all(splits))

    def stream(
        self,
        *,
        position: StreamPosition | None = None,
        startup: str | StartupMode | None = None,
        timestamp: Moment | None = None,
        normalize: str | ScanNormalize | None = None,
        on_untracked: str | UntrackedScan | None = None,
        state_directory: str | None = None,
    ) -> HybridSource:
        """Read the table as a stream of changes, from ``position``, else from ``startup`` (default: ``log.scan``).

        ``startup`` "latest" starts with the first change after this call.

        ``normalize`` (default: ``scan.normalize``) "lookup" adds the pre-image of every change. It needs the snapshots
        since the stream's position: register the stream as a consumer. "state" adds pre-images from the rows that the
        stream has read. It stores them in ``state_directory`` (a path or URL that only this stream uses; None: on the
        local disk until the stream is closed) and needs only the snapshot at which it starts.

        ``on_untracked`` (default: ``scan.on-untracked``) "warn" logs a warning at each commit without change tracking;
        "fail" raises ``UntrackedCommitError`` at it, before any later change is returned.
        """
        source = self._reads.streams.open(
            position=position,
            startup=startup,
            timestamp_millis=optional_millis(timestamp, "timestamp"),
            normalize=normalize,
            on_untracked=on_untracked,
            state_directory=state_directory,
            whole_commits=False,
        )
        source.fix_start()
        return source

    def new_read(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  the field's word for it
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: Moment | None = None,
    ) -> ReadBuilder:
        """Return a read for an engine: planned on the driver, read in tasks. The arguments are those of ``read``."""
        return ReadBuilder(
            columns=columns,
            filter=filter,
            find_snapshot=partial(
                self._reads.time_travel.snapshot, snapshot_id=snapshot_id, tag=tag, timestamp=timestamp
            ),
            parts=self._reads,
        )

    # --- write --------------------------------------------------------------------------------------------------

    @reports_outcome
    @_commits_once
    def append(
        self,
        rows: Frame,
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
        change_tracking: bool | None = None,
        source: SourceRange | None = None,
        rejected: pa.Table | None = None,
        resolved: Sequence[str] = (),
        based_on: int | None = None,
    ) -> Snapshot | None:
        """Insert, update and delete rows by ``_row_kind`` in one commit; rows without it are upserts. None for no rows.

        The same ``(commit_user, commit_identifier)`` commits once, however often the call is repeated. Unless the table
        is ``write-only``, due compactions run afterwards. ``source``: the rows are all rows of that range of an
        external source, which may be empty (``WriteBuilder.commit``). ``rejected``: records of the source that are not
        among the rows, with the columns of ``REJECTED_SCHEMA``; the commit stores them in ``<table>$rejected``.
        ``resolved``: ids of stored rejected records, which leave with this commit. ``based_on``: the rows were computed
        from this snapshot (``WriteBuilder.begin``). New rows need every column without a default; deletions need only
        the key columns, and with ``merge-engine=partial-update`` missing columns keep their stored values. Raises
        ``InvalidInputError`` before any row becomes visible, and ``CommitConflictError`` if the table has changed since
        ``based_on`` or a resolved record has left already. Repeat the call after ``LeaseLostError`` and
        ``UnavailableError``.
        """
        rows = arrow_rows(self.name, rows, self.arrow_schema)
        self._writes.input.check_columns(rows.schema)
        user, identifier = self._identity(commit_user, commit_identifier)
        builder = self.new_write()
        change = builder.rejected_change(rejected, resolved)
        order = builder.begin(commit_user=user, tracked=change_tracking, based_on=based_on)
        if source is not None or resolved:
            ranges = [] if source is None else [source]
            # A source may repeat older rows, whose keys sequence.field decides.
            order = replace(order, refuses_late=False)
            order = builder.commits.with_lease(order, partial(with_rejected, ranges=ranges, change=change))
        batches = self._writes.input.whole_rows(record_batches(rows), "append")
        return self._writes.direct.write(order, batches, identifier, source, rejected=change)

    @reports_outcome
    @_commits_once
    def overwrite(
        self,
        rows: Frame,
        *,
        partition: Mapping[str, object] | None = None,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
        progress: ProgressOption = None,
    ) -> Snapshot | None:
        """Replace partitions by ``rows``: the partitions of the rows, or all that have the values of ``partition``.

        ``partition={}`` replaces the whole table, and so does any overwrite of a table without partitions. Streams
        never see overwrites of an append-only table. ``progress`` counts rows ("overwrite") and then, if the overwrite
        is tracked, the buckets in which old and new rows are compared ("compare"). Rows need every column without a
        default. Raises as ``append`` does, and ``CommitConflictError`` (untracked only) if another commit has replaced
        the same files.
        """
        rows = arrow_rows(self.name, rows, self.arrow_schema)
        self._writes.input.check_columns(rows.schema)
        self._writes.input.check_complete(rows.schema, "overwrite", ADD_NULLS)
        user, identifier = self._identity(commit_user, commit_identifier)
        order = self.new_write().begin(commit_user=user, tracked=change_tracking, overwrite=scope_of(partition))
        counted = operation("overwrite", self.name, total=row_count(rows), unit="rows")
        with report_to(progress):
            return self._writes.direct.write(order, record_batches(rows), identifier, progress=counted)

    @reports_outcome
    @_commits_once
    def insert(
        self,
        rows: Frame,
        *,
        partial: bool = False,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Add rows with new keys; for a table without a primary key as ``append``. None for no rows.

        The rows have all columns. With ``partial``, missing columns are null or have their default. Raises
        ``InvalidInputError``, before anything is committed, for missing columns, existing keys, repeated keys, and rows
        that ``sequence.field`` makes older than the deletion of their key; otherwise as ``append`` does.
        """
        return self._row_verbs.insert(rows, (commit_user, commit_identifier), change_tracking, partial=partial)

    @reports_outcome
    @_commits_once
    def upsert(
        self,
        rows: Frame,
        *,
        partial: bool = False,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Replace the rows of existing keys, and add the rows of new ones; None for no rows.

        The rows have all columns. With ``partial``, missing columns keep their stored values (null or the default in
        new rows), and each key is given once. Rows that ``sequence.field`` makes older than the stored ones are
        ignored, as by ``append``. Raises ``InvalidInputError`` for missing columns and for a table without a primary
        key; otherwise as ``append`` does.
        """
        verbs = self._row_verbs_now if partial or self._row_verbs.logs_before else self._row_verbs
        return verbs.upsert(rows, (commit_user, commit_identifier), change_tracking, partial=partial)

    @reports_outcome
    @_commits_once
    def update(
        self,
        filter: Filter,  # noqa: A002  the field's word for it
        values: Mapping[str, object],
        *,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Set columns of the rows that match, in one commit; None if no row matches.

            table.update("item = 'tea'", {"price": pl.col("price") * 2, "note": None})

        A value is a literal of the column's type or a Polars expression over the row's columns. No other commit comes
        between the read and the write: other writers wait for the lease. Raises ``InvalidInputError`` for columns of
        the primary key, values of the wrong type, append-only tables, merge engines that combine rows, and rows that
        ``sequence.field`` makes older than they were; otherwise as ``append`` does.
        """
        return self._row_verbs_now.update(filter, values, (commit_user, commit_identifier), change_tracking)

    @reports_outcome
    @_commits_once
    def delete(
        self,
        filter_or_keys: Filter | Frame,
        *,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Delete the rows that match a filter, or the rows of keys such as ``[{"id": 3}]``; None if no row matches.

        Raises as ``update`` does.
        """
        return self._row_verbs_now.delete(filter_or_keys, (commit_user, commit_identifier), change_tracking)

    @reports_outcome
    @_commits_once
    def merge(
        self,
        source: Frame,
        *,
        matched: Matched = "update",
        not_matched: NotMatched = "insert",
        not_matched_by_source: NotMatchedBySource = "keep",
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Merge ``source`` into the table by primary key, in one commit; None if nothing changes.

            table.merge(products, not_matched_by_source="delete")        the table equals the source afterwards

        ``matched`` rows of the table are updated (columns that the source lacks keep their stored values), deleted or
        kept. Rows of the source that are ``not_matched`` are inserted or ignored. Rows of the table that are
        ``not_matched_by_source`` are kept or deleted, which reads the whole table. For other conditions use SQL's MERGE
        INTO. Raises ``InvalidInputError`` for a key that the source has twice, and as ``update`` does.
        """
        return self._row_verbs_now.merge(
            source,
            (commit_user, commit_identifier),
            change_tracking,
            matched=matched,
            not_matched=not_matched,
            not_matched_by_source=not_matched_by_source,
        )

    @reports_outcome
    def rollback_to(
        self,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: Moment | None = None,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Restore the content of an older snapshot in a new one; None if the table already has this content.

        Commits since then can be made again under their identities. If their changes cancel out, a rollback with
        ``change_tracking`` makes an empty snapshot, so that this is known.

        With ``change_tracking`` (default: if the table has a log or a changelog producer) streams see the net change.
        Raises ``NotFoundError`` or ``SnapshotExpiredError`` for the snapshot, and as ``append`` does.
        """
        # Streams need the rows that it removes with all columns, also those that others have added.
        newest = self.refresh()
        rollback = TableRollback(
            newest.context,
            time_travel=newest._reads.time_travel,  # noqa: SLF001  of the same table
            tags=newest.tags,
            restore=newest._writes.restore,  # noqa: SLF001
            tracks=newest._writes.has_streams,  # noqa: SLF001
        )
        return rollback.rollback_to(
            snapshot_id=snapshot_id,
            tag=tag,
            timestamp=timestamp,
            change_tracking=change_tracking,
            commit_user=commit_user,
            commit_identifier=commit_identifier,
        )

    def new_write(self) -> WriteBuilder:
        """Return a write for an engine: begun and committed on the driver, written by tasks."""
        return self._writes.builder

    # --- schema, upkeep -----------------------------------------------------------------------------------------

    @reports_outcome
    def alter(self, *changes: SchemaChange) -> DynamicTable:
        """Change columns, comments or options, all of ``changes`` or none; return the altered table.

            table = table.alter(AddColumn("discount", "DECIMAL(10, 2)", after="price"), RenameColumn("item", "article"))

        No file is rewritten: older files are read under the new schema, with columns matched by their ids. Readers and
        writers that have the table open keep their schema. Raises ``InvalidInputError`` for an impossible change, with
        the column and the remedy, and ``NotFoundError`` if the table was dropped.
        """
        altered = self._schema_changes.apply(changes)
        if altered.id == self.schema.id:
            return self
        with outcome(committed=True):
            if self._on_altered is not None:
                self._on_altered(altered)
            table = self._as_under(altered)
            table.context.succeed_view(self.context)
            return table

    @reports_outcome
    def rewrite(
        self,
        *,
        primary_key: Sequence[str] = (),
        options: Mapping[str, str | None] | None = None,
        commit_user: str | None = None,
        progress: ProgressOption = None,
    ) -> DynamicTable:
        """Rewrite every row: add a primary key to a table without one, or change ``bucket`` or ``bucket-key``.

            table = table.rewrite(options={"bucket": "8"})

        One snapshot changes all rows at once; the log restarts in a new topic, ``<topic>-v<n>``. Repeat the call to
        resume an interrupted rewrite. Writers wait meanwhile. Afterwards writers, and streams at a position in the old
        log, are refused until they load the table again. ``progress`` counts the files that were read; each attempt
        starts at 0. Raises ``InvalidInputError`` for rows that share a key and for an impossible change;
        ``CommitConflictError`` if every attempt conflicted with commits that need no lease; otherwise as ``append``
        does.
        """
        change = LayoutChange(primary_key=tuple(primary_key), options=checked_layout_options(self.name, options or {}))
        user = commit_user or self.environment.new_name()
        for attempt in range(1, REWRITE_ATTEMPTS + 1):
            current = self.refresh()
            try:
                with report_to(progress):
                    schema = current._rewriting.run(change, commit_user=user)  # noqa: SLF001  a table too
            except CommitConflictError:
                if attempt == REWRITE_ATTEMPTS:
                    raise
                continue
            if schema.id == current.schema.id:
                return current
            with outcome(committed=True):
                if self._on_altered is not None:
                    self._on_altered(schema)
                table = self._as_under(schema)
                table.context.succeed_view(self.context)
                return table
        raise AssertionError

    def refresh(self, *, schema_id: int | None = None) -> DynamicTable:
        """Return the table under its newest schema, or under one version of it; the same object if it has that version.

        Without ``schema_id`` it is another object too if another engine has rolled the table back, and replaced
        snapshots that this object has read. Raises ``NotFoundError`` for an unknown version, and if the table was
        dropped, also if another one has its name now.
        """
        if schema_id is not None:
            return self if schema_id == self.schema.id else self._as_under(self._schema_changes.version(schema_id))
        newest = self._schema_changes.newest()
        if newest.id == self.schema.id and not self.inspect.snapshots_are_replaced():
            return self
        # What differs may be of another table, which was created under this name.
        self.context.file_store.check_still_there()
        return self._as_under(newest)

    @reports_outcome
    def compact(
        self,
        *,
        partition: Mapping[str, object] | None = None,
        full: bool = True,
        buckets: Iterable[tuple[Mapping[str, object], int]] | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
        progress: ProgressOption = None,
    ) -> Snapshot | None:
        """Merge the sorted runs of every bucket into one, or with ``full=False`` only the runs that are due; None if
        nothing was due.

        ``buckets`` limits the compaction to these, each given by its whole partition and its number; compactions of
        different buckets do not conflict. ``progress`` counts buckets (see ``storage_lib.progress``). Writers continue.
        Buckets whose files another commit has replaced are left to the next compaction; if that applies to all of them,
        ``CommitConflictError`` is raised and the output is deleted: repeat the call. Raises ``InvalidInputError`` for a
        bucket whose rows cannot be merged (a sum too large for its column), after the other buckets were committed.
        """
        with report_to(progress):
            return self._writes.care.compact(
                partition=partition,
                full=full,
                buckets=buckets,
                commit_user=commit_user,
                commit_identifier=commit_identifier,
            )

    def describe(self, partition: Mapping[str, object] | None = None) -> Description:
        """Describe the table or one partition, as DESCRIBE TABLE EXTENDED does.

        Raises ``InvalidInputError`` for an invalid partition, ``NotFoundError`` for a partition without files.
        """
        return self.inspect.describe(partition)

    def close(self) -> None:
        """Close the connections to the log."""
        if self.log is not None:
            self.log.close()

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

    def _as_under(self, schema: TableSchema) -> DynamicTable:
        if self._under is None:
            message = f"table {self.name}: its schema is now version {schema.id}; load it again"
            raise InvalidInputError(message)
        return self._under(schema)

    def _earlier(self, commit_user: Any, commit_identifier: Any) -> Snapshot | None:
        if commit_identifier is None:
            return None
        return self._writes.builder.commits.committed(*self._identity(commit_user, commit_identifier))

    def _identity(self, commit_user: str | None, commit_identifier: int | None) -> tuple[str, int]:
        return write_identity_of(self.name, self.environment, commit_user, commit_identifier)
