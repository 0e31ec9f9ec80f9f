"""Makes the table show again what an older snapshot shows, or another branch's: always in a new snapshot.

Snapshots are never taken back: whoever has read one may rely on its number, the log can't be rolled back, and other
writers go on meanwhile. What was rolled back can itself be rolled back.

untracked   files for files: those that came since go, those that went come back. Costs metadata only, needs no turn.
tracked     the difference between the two contents is appended, in a turn, to both stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit import Guard
from storage_lib.file_store.commit_message import Committable
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.store import FileStore
from storage_lib.schema.layout import layout_of
from storage_lib.schema.row_kind import ROW_KIND_SYMBOLS
from storage_lib.schema.table_options import OWN_PREFIX, TableOptions
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.content_difference import ContentDifference, places_that_differ
from storage_lib.table.source_offsets import SourceOffsets
from storage_lib.table.table_commit import TableCommit
from storage_lib.table.table_write import TableWrite
from storage_lib.table.write_order import WriteOrder


class TableRestore:
    """Commits restored contents of one table. The target's files have to be kept by the caller (``TableTags``)."""

    def __init__(
        self,
        *,
        table: str,
        file_store: FileStore,
        commit: TableCommit,
        difference: ContentDifference,
        row_kind_column: str,
        refuse_tracked: str | None,
        new_task_write: Callable[[WriteOrder], TableWrite],
    ) -> None:
        self._table = table
        self._file_store = file_store
        self._commit = commit
        self._difference = difference
        self._row_kind_column = row_kind_column
        self._refuse_tracked = refuse_tracked
        self._new_task_write = new_task_write

    def committed(self, commit_user: str, commit_identifier: int) -> Snapshot | None:
        """What this identity was committed as before."""
        return self._commit.committed(commit_user, commit_identifier)

    def restore(
        self,
        target: Snapshot,
        *,
        tracked: bool,
        commit_user: str,
        commit_identifier: int,
        properties: Mapping[str, str],
        guard: Guard | None = None,
        history: SnapshotHistory | None = None,
    ) -> Snapshot | None:
        """Commit the content of ``target`` as the newest; None if it is that already.

        ``guard`` may object to the snapshot that is followed. The offsets of foreign sources come back with the
        target, whose ``history`` is the table's unless it is a branch's, and so do properties that are not this
        library's. Ask ``committed`` first. Raises as ``TableCommit.commit``.
        """
        self._refuse_another_layout(target)
        own = {key: value for key, value in target.properties.items() if not key.startswith(OWN_PREFIX)}
        offsets = self._commit.source_offsets(target, history)
        if tracked:
            return self._append_difference(
                target, commit_user, commit_identifier, {**own, **properties}, guard, offsets
            )

        def sources(_: SourceOffsets) -> SourceOffsets:
            return offsets

        committable = Committable(
            commit_user=commit_user, commit_identifier=commit_identifier, properties={**own, **properties}
        )

        def properties_of(previous: Snapshot | None) -> Mapping[str, str]:
            return self._commit.carried_forward(previous, sources)

        restored = self._file_store.commit.restore(committable, target, guard=guard, properties_of=properties_of)
        if restored is None and self._are_others(offsets, self._file_store.snapshots.latest()):
            return self._file_store.commit.commit(committable, guard=guard, properties_of=properties_of)
        return restored

    def _append_difference(
        self,
        target: Snapshot,
        commit_user: str,
        commit_identifier: int,
        properties: Mapping[str, str],
        guard: Guard | None,
        offsets: SourceOffsets,
    ) -> Snapshot | None:
        if self._refuse_tracked is not None:
            message = (
                f"table {self._table}: {self._refuse_tracked}, so a difference can't be appended to it; "
                "use change_tracking=False"
            )
            raise InvalidInputError(message)
        order = self._commit.open(commit_user=commit_user, tracked=True, purpose="restore", is_difference=True)
        try:
            base = None
            if order.base_snapshot_id is not None:
                base = self._file_store.snapshots.load(order.base_snapshot_id)
            if guard is not None:
                guard(base)
            scan = self._file_store.scan
            old, new = places_that_differ(scan.live_files(base), scan.live_files(target))
            write = self._new_task_write(order)
            try:
                for rows, kinds in self._difference.between(old, new, snapshot_id=target.id):
                    write.write(self._with_kinds(rows, kinds))
                message_of_task = write.prepare_commit()
            except BaseException:
                write.abort()
                raise
        except BaseException:
            self._commit.abort(order, [])
            raise
        rewinds = self._are_others(offsets, base)
        return self._commit.commit(
            order,
            [message_of_task],
            commit_identifier,
            properties=properties,
            sources=(lambda _: offsets) if rewinds else None,
        )

    def _refuse_another_layout(self, target: Snapshot) -> None:
        was = self._file_store.version(target.schema_id)
        if layout_of(was) != layout_of(self._file_store.schema):
            message = (
                f"table {self._table} was rewritten after snapshot {target.id} was made, into other buckets or with a "
                f"key, so its files can't come back. Overwrite the table with the rows of VERSION AS OF {target.id}"
            )
            raise InvalidInputError(message)

    def _are_others(self, offsets: SourceOffsets, than_of: Snapshot | None) -> bool:
        # With the topics' ids, which offsets that are compared do not tell.
        return offsets.to_properties() != self._commit.source_offsets(than_of).to_properties()

    def _with_kinds(self, rows: pa.RecordBatch, kinds: pa.Array) -> pa.RecordBatch:
        return rows.append_column(self._row_kind_column, pa.array(ROW_KIND_SYMBOLS).take(kinds))


def why_no_difference_can_be_appended(schema: TableSchema, options: TableOptions) -> str | None:
    """The reason why rows appended to this table would not put one content in place of another; None if they do."""
    if schema.is_append_only:
        return "it is append-only"
    if schema.counts_values:
        return None
    if options.merge_engine != "deduplicate":
        return f"its merge engine is {options.merge_engine}, which merges what is appended with what is there"
    if options.sequence_field:
        return "its sequence.field, not the order of commits, decides which row wins"
    if options.ignore_delete:
        return "it passes over deletions (ignore-delete)"
    return None
