"""Replaces the content of some or all partitions: whole files if untracked, else by appending the net change.

untracked   old files out, new files in, one OVERWRITE snapshot. The new rows have sequence number 0, so that
            whatever a stream commits during or after the overwrite wins. No lease is needed.
tracked     the difference between old and new content is appended, under the lease, to both stores. Downstream
            streams get removed, changed and new rows, and no unchanged ones. Where appended rows would be merged with
            the stored ones (merge engines, sequence.field), files are replaced here as well: such a table has no log,
            and its streams compare the contents before and after. With a changelog producer the difference is the
            snapshot's changelog.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from storage_lib.errors import (
    CommitConflictError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
    StorageError,
)
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.after_commit import after_commit
from storage_lib.progress.operation import operation
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.changelog.overwrite_changelog import OverwriteChangelog
from storage_lib.table.changelog.snapshot_diff import FilesByPlace, Place, SnapshotDiff
from storage_lib.table.commit.appended_difference import why_no_difference_can_be_appended
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.input.partition_spec import PartitionSpecs
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.write_context import OverwriteScope, TableCommitMessage, WriteContext
from storage_lib.table.write.table_write import TableWrite


class TableOverwrite:
    """Commits overwrites and partition drops of one table.

    ``of_newest_schema`` returns the same object under the table's newest schema.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        commit: TableCommit,
        partitions: PartitionSpecs,
        difference: SnapshotDiff,
        overwrite_changelog: OverwriteChangelog | None,
        new_task_write: Callable[[WriteContext], TableWrite],
        of_newest_schema: Callable[[], TableOverwrite],
    ) -> None:
        self._of_newest_schema = of_newest_schema
        self._table = context.name
        self._schema = context.schema
        self._file_store = context.file_store
        self._commit = commit
        self._partitions = partitions
        self._row_kind_column = context.options.row_kind_field
        self._difference = difference
        reason = why_no_difference_can_be_appended(context.schema, context.options)
        self._appends_difference = reason is None
        # Streams of an append-only table never see overwrites.
        self._not_logged = None if context.log is None or context.schema.is_append_only else reason
        self._changelog_source = overwrite_changelog
        self._new_task_write = new_task_write

    def commit(
        self, write_context: WriteContext, messages: Sequence[TableCommitMessage], commit_identifier: int
    ) -> Snapshot | None:
        """Replace the content of the context's scope by the files of all tasks; None if nothing changes.

        Raises ``InvalidInputError`` for rows outside the scope, and as ``TableCommit.commit``; the tasks' files are
        then deleted.
        """
        if write_context.tracked and not self._file_store.is_of_newest_schema():
            # Streams need the replaced rows with all columns, also those that others have added.
            try:
                self._file_store.check_layout(self._file_store.snapshots.latest())
                newest = self._of_newest_schema()
            except BaseException:
                with suppress(StorageError):
                    self._commit.abort(write_context, messages)
                raise
            if newest._schema.id != self._schema.id:  # noqa: SLF001  the same class
                return newest.commit(write_context, messages, commit_identifier)
        files = tuple(each for message in messages for each in message.files)
        scope = write_context.overwrite or OverwriteScope()
        appends = write_context.tracked and self._appends_difference
        try:
            self._refuse_outside(scope, files)
            self._refuse_unlogged(write_context)
            if appends:
                snapshot = self._commit_difference(write_context, scope, files, commit_identifier)
            else:
                replaced = self._replaced(write_context, scope, files)
                changelog = self._changelog(write_context, replaced, files)
                old = TableCommitMessage(files=(*deletions_of(replaced), *changelog))
        except BaseException:
            with suppress(StorageError):
                self._commit.abort(write_context, messages)
            raise
        if not appends:
            return self._commit.commit(write_context, [*messages, old], commit_identifier)
        # The appended difference contains the new rows. A failure to delete the tasks' files does not affect the
        # commit.
        with after_commit(f"table {self._table}: deleting the files that the difference was made of"):
            self._file_store.abort(files)
        return snapshot

    def _refuse_unlogged(self, write_context: WriteContext) -> None:
        if write_context.tracked and self._not_logged is not None:
            message = (
                f"table {self._table}: {self._not_logged}, so what is replaced can't be removed from its log; use "
                "change_tracking=False"
            )
            raise InvalidInputError(message)

    def _replaced(
        self, write_context: WriteContext, scope: OverwriteScope, files: tuple[CommitMessage, ...]
    ) -> list[ManifestEntry]:
        """Return the files that a file-replacing overwrite deletes: those live when it began.

        If another commit has compacted or overwritten one of them, the commit conflicts. Rows that streams have added
        since stay, and win.
        """
        try:
            base = None
            if write_context.base_snapshot_id is not None:
                base = self._file_store.snapshots.load(write_context.base_snapshot_id)
            return self._live(base, scope, files)
        except (SnapshotExpiredError, NotFoundError) as error:
            message = (
                f"table {self._table}: snapshot {write_context.base_snapshot_id}, the base of this overwrite, expired "
                "before its end, so it is not known any more what to replace. Nothing became visible; run it again, "
                "and keep snapshots for longer than an overwrite takes (expire_snapshots(older_than_millis=...))"
            )
            raise CommitConflictError(message) from error

    def _changelog(
        self, write_context: WriteContext, replaced: Sequence[ManifestEntry], files: tuple[CommitMessage, ...]
    ) -> tuple[CommitMessage, ...]:
        """Return the changelog of a tracked overwrite that replaces files, for streams that read changelog files."""
        if not write_context.tracked or self._changelog_source is None:
            return ()
        old: dict[Place, list[DataFileMeta]] = defaultdict(list)
        new: dict[Place, list[DataFileMeta]] = defaultdict(list)
        counts: dict[Place, int] = {}
        for entry in replaced:
            old[entry.partition, entry.bucket].append(entry.file)
            counts[entry.partition, entry.bucket] = entry.total_buckets
        for message in files:
            new[message.partition, message.bucket] += message.increment.new_files
            counts[message.partition, message.bucket] = message.bucket_count
        return self._changelog_source.messages(
            old, new, snapshot_id=write_context.base_snapshot_id or 0, bucket_count_of=counts.__getitem__
        )

    def _commit_difference(
        self,
        write_context: WriteContext,
        scope: OverwriteScope,
        files: tuple[CommitMessage, ...],
        commit_identifier: int,
    ) -> Snapshot | None:
        append, base = self._opened(write_context)
        if self._file_store.may_lack_columns_of(base):
            # The table was altered while this process waited for the lease.
            self._commit.abort(append, [])
            newest = self._of_newest_schema()
            return newest._commit_difference(write_context, scope, files, commit_identifier)  # noqa: SLF001  the same class
        try:
            earlier = self._commit.committed(write_context.commit_user, commit_identifier)
            if earlier is not None:
                self._commit.abort(append, [])
                return earlier
            old, new = self._contents(base, scope, files)
            places = sorted({*old, *new})
            write = self._new_task_write(append)
            try:
                with operation("compare", self._table, total=len(places), unit="buckets") as buckets:
                    # At most one bucket's old and new rows are in memory.
                    for place in places:
                        for rows, kinds in self._difference.between(
                            {place: old.get(place, ())},
                            {place: new.get(place, ())},
                            snapshot_id=append.base_snapshot_id or 0,
                        ):
                            write.write(self._with_kinds(rows, kinds))
                        buckets.advance()
                    # The lease is not renewed after the writer's end, so that a slow callback could lose it.
                    buckets.finish()
                    message = write.prepare_commit()
            except BaseException:
                write.abort()
                raise
        except BaseException:
            self._commit.abort(append, [])
            raise
        return self._commit.commit(append, [message], commit_identifier)

    def _opened(self, write_context: WriteContext) -> tuple[WriteContext, Snapshot | None]:
        """Return the context of the difference, under a lease, and its base."""
        append = self._commit.open(
            commit_user=write_context.commit_user, tracked=True, purpose="tracked overwrite", is_difference=True
        )
        if append.base_snapshot_id is None:
            return append, None
        try:
            return append, self._file_store.snapshots.load(append.base_snapshot_id)
        except BaseException:
            self._commit.abort(append, [])
            raise

    def _contents(
        self, base: Snapshot | None, scope: OverwriteScope, files: tuple[CommitMessage, ...]
    ) -> tuple[FilesByPlace, FilesByPlace]:
        """Return the files that the overwrite replaces, and the files that replace them."""
        old: dict[tuple[bytes, int], list[DataFileMeta]] = defaultdict(list)
        new: dict[tuple[bytes, int], list[DataFileMeta]] = defaultdict(list)
        for entry in self._live(base, scope, files):
            old[entry.partition, entry.bucket].append(entry.file)
        for message in files:
            new[message.partition, message.bucket] += message.increment.new_files
        return old, new

    def _live(
        self, base: Snapshot | None, scope: OverwriteScope, files: tuple[CommitMessage, ...]
    ) -> list[ManifestEntry]:
        if scope.partitions is None:
            return self._file_store.scan.entries(base, partitions={message.partition for message in files})
        predicate = self._partitions.predicate_of(scope)
        return self._file_store.scan.entries(base, partition_filter=predicate)

    def _refuse_outside(self, scope: OverwriteScope, files: tuple[CommitMessage, ...]) -> None:
        predicate = self._partitions.predicate_of(scope)
        if predicate is None:
            return
        written = {message.partition for message in files}
        outside = written - self._file_store.scan.matching_partitions(written, predicate)
        if outside:
            named = ", ".join(str(spec) for spec in scope.specs)
            message = (
                f"table {self._table}: overwriting partition {named}, but the input has rows of "
                f"partition {self._file_store.scan.partition_text(min(outside))}. Filter the input, or overwrite that "
                "partition too"
            )
            raise InvalidInputError(message)

    def _with_kinds(self, rows: pa.RecordBatch, kinds: pa.Array) -> pa.RecordBatch:
        symbols = pa.array(ROW_KIND_SYMBOLS).take(kinds)
        return rows.append_column(self._row_kind_column, symbols)


def deletions_of(entries: Sequence[ManifestEntry]) -> tuple[CommitMessage, ...]:
    """Return commit messages that delete these files."""
    buckets: dict[tuple[bytes, int, int], list[DataFileMeta]] = defaultdict(list)
    for entry in entries:
        buckets[entry.partition, entry.bucket, entry.total_buckets].append(entry.file)
    return tuple(
        CommitMessage(
            partition=partition, bucket=bucket, bucket_count=count, increment=Increment(deleted_files=tuple(deleted))
        )
        for (partition, bucket, count), deleted in buckets.items()
    )


def scope_of(partition: Mapping[str, object] | None) -> OverwriteScope:
    """Return the scope that a user named: None (the partitions of the rows) or a mapping (empty: the whole table)."""
    return OverwriteScope() if partition is None else OverwriteScope.of(partition)
