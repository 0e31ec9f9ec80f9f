"""Restores the content of an older snapshot, or of another branch's snapshot, in a new snapshot.

It removes no snapshot: readers rely on their numbers, the log cannot be rolled back, and other writers continue. A
rollback can itself be rolled back.

untracked   files are replaced: those added since are removed, those removed since come back. Costs metadata only, needs
            no lease.
tracked     the difference between the two contents is appended, under the lease, to both stores. Where appended rows
            would be merged with the stored ones, files are replaced; streams of the table compare the two contents, and
            those of other engines read the difference in the snapshot's changelog (of a table with a changelog
            producer; others refuse, and so does a table with a log, which would lack the difference).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
    StorageError,
)
from storage_lib.file_store.commit import Guard, PropertiesOf
from storage_lib.file_store.commit_message import Committable
from storage_lib.file_store.planning.live_files import LiveFiles
from storage_lib.file_store.snapshot.commit_record import ROLLED_BACK_TO, CommitRecord
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.schema.options.table_options import OWN_PREFIX
from storage_lib.schema.placing.layout import layout_of
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.changelog.overwrite_changelog import OverwriteChangelog
from storage_lib.table.changelog.snapshot_diff import SnapshotDiff, places_that_differ
from storage_lib.table.commit.appended_difference import why_buckets_differ, why_no_difference_can_be_appended
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.protocol.source_offsets import SourceOffsets
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.write_context import WriteContext
from storage_lib.table.write.table_write import TableWrite

_ATTEMPTS = 5


class TableRestore:
    """Commits restored contents of one table. The caller keeps the target's files from expiring (``TableTags``).

    ``of_newest_schema`` returns the same object under the table's newest schema.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        commit: TableCommit,
        difference: SnapshotDiff,
        overwrite_changelog: OverwriteChangelog | None,
        compact: Callable[[Snapshot], None],
        new_task_write: Callable[[WriteContext], TableWrite],
        of_newest_schema: Callable[[], TableRestore],
    ) -> None:
        self._of_newest_schema = of_newest_schema
        self._table = context.name
        self._file_store = context.file_store
        self._has_log = context.log is not None
        self._commit = commit
        self._difference = difference
        self._row_kind_column = context.options.row_kind_field
        self._refuse_tracked = why_no_difference_can_be_appended(context.schema, context.options) or why_buckets_differ(
            context.schema
        )
        self._changelog_source = overwrite_changelog
        self._compact = compact
        self._new_task_write = new_task_write

    def committed(self, commit_user: str, commit_identifier: int) -> Snapshot | None:
        """See ``SnapshotPublisher.committed``."""
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
        """Commit the content of ``target`` as the newest snapshot.

        None if it is the current content, unless a rollback takes commits back whose changes cancel out.

        ``guard`` may reject the snapshot that the new one follows. The target's offsets of external sources and its
        properties from other writers are restored; ``history`` is that of the target's branch (None: the table's). Due
        compactions run afterwards. Call ``committed`` first. Raises otherwise as ``TableCommit.commit``.
        """
        return self._restore(
            _Restoration(target, tracked, commit_user, commit_identifier, properties, guard=guard, history=history)
        )

    def _restore(self, wanted: _Restoration) -> Snapshot | None:
        try:
            snapshot = self._restored(wanted)
        except _AlteredError:
            return self._of_newest_schema()._restore(wanted)  # noqa: SLF001
        if snapshot is not None:
            # Rows may be back in level 0, which other engines skip in some tables.
            self._compact(snapshot)
        return snapshot

    def _restored(self, wanted: _Restoration) -> Snapshot | None:
        target, guard = wanted.target, wanted.guard
        self._refuse_another_layout(target)
        own = {key: value for key, value in target.properties.items() if not key.startswith(OWN_PREFIX)}
        properties = {**own, **wanted.properties}
        offsets = self._commit.source_offsets(target, wanted.history)
        is_replaced = self._refuse_tracked is not None and self._changelog_source is not None and not self._has_log
        writes_changelog = wanted.tracked and is_replaced
        if wanted.tracked and not writes_changelog:
            return self._append_difference(wanted, properties, offsets)

        def sources(_: SourceOffsets) -> SourceOffsets:
            return offsets

        committable = Committable(
            commit_user=wanted.commit_user, commit_identifier=wanted.commit_identifier, properties=properties
        )

        def properties_of(previous: Snapshot | None) -> Mapping[str, str]:
            return self._commit.carried_forward(previous, sources, tracked=writes_changelog)

        if writes_changelog:
            restored = self._restore_reporting(committable, target, guard=guard, properties_of=properties_of)
        else:
            restored = self._file_store.commit.restore(committable, target, guard=guard, properties_of=properties_of)
        if restored is None and self._are_others(offsets, self._file_store.snapshots.latest()):
            return self._file_store.commit.commit(committable, guard=guard, properties_of=properties_of)
        return restored

    def _restore_reporting(
        self, committable: Committable, target: Snapshot, *, guard: Guard | None, properties_of: PropertiesOf
    ) -> Snapshot | None:
        """Replace whole files, with the difference as the snapshot's changelog."""
        overwrite_changelog = self._changelog_source
        assert overwrite_changelog is not None  # noqa: S101  the caller has asked
        for attempt in range(1, _ATTEMPTS + 1):
            base = self._file_store.snapshots.latest()
            self._check_columns(base)
            before, after = self._file_store.scan.live_files(base), self._file_store.scan.live_files(target)
            old, new = places_that_differ(before, after)
            messages = overwrite_changelog.messages(
                old,
                new,
                snapshot_id=target.id,
                bucket_count_of=lambda place, live=(before, after): _bucket_count(place[0], *live),  # type: ignore[misc]
            )

            def same(latest: Snapshot | None, base: Snapshot | None = base) -> None:
                if guard is not None:
                    guard(latest)
                if latest is not None and (base is None or latest.id != base.id):
                    raise _MovedError

            try:
                return self._file_store.commit.restore(
                    replace(committable, messages=messages), target, guard=same, properties_of=properties_of
                )
            except CommitOutcomeUnknownError:
                raise
            except _MovedError:
                self._file_store.abort(messages)
                if attempt == _ATTEMPTS:
                    break
            except Exception:
                with suppress(StorageError):
                    self._file_store.abort(messages)
                raise
        message = (
            f"table {self._table}: others kept committing while the changes back to snapshot {target.id} were "
            "compared. Nothing of this commit is left; run it again, or with change_tracking=False"
        )
        raise CommitConflictError(message)

    def _append_difference(
        self, wanted: _Restoration, properties: Mapping[str, str], offsets: SourceOffsets
    ) -> Snapshot | None:
        target, guard = wanted.target, wanted.guard
        if self._refuse_tracked is not None:
            message = (
                f"table {self._table}: {self._refuse_tracked}, so a difference can't be appended to it; "
                "use change_tracking=False"
            )
            raise InvalidInputError(message)
        write_context = replace(
            self._commit.open(commit_user=wanted.commit_user, tracked=True, purpose="restore", is_difference=True),
            reads_base=True,
        )
        try:
            base = None
            if write_context.base_snapshot_id is not None:
                base = self._file_store.snapshots.load(write_context.base_snapshot_id)
            self._check_columns(base)
            if guard is not None:
                guard(base)
            scan = self._file_store.scan
            old, new = places_that_differ(scan.live_files(base), scan.live_files(target))
            write = self._new_task_write(write_context)
            try:
                for rows, kinds in self._difference.between(old, new, snapshot_id=target.id):
                    write.write(self._with_kinds(rows, kinds))
                message_of_task = write.prepare_commit()
            except BaseException:
                write.abort()
                raise
        except BaseException:
            self._commit.abort(write_context, [])
            raise
        has_to_be_known = ROLLED_BACK_TO in properties and self._takes_commits_back(base, target)
        has_to_be_made = has_to_be_known or self._are_others(offsets, base)
        return self._commit.commit(
            write_context,
            [message_of_task],
            wanted.commit_identifier,
            properties=properties,
            # Offsets are committed also without rows.
            sources=(lambda _: offsets) if has_to_be_made else None,
        )

    def _takes_commits_back(self, base: Snapshot | None, target: Snapshot) -> bool:
        """Return whether a rollback voids commits, or brings some back, also where the rows are the same.

        After an insertion and its deletion, for example, a repeated insertion has to be made again.
        """
        at = base
        while at is not None and at.id > target.id:
            rolled_back_to = CommitRecord.of(at).rolled_back_to
            if rolled_back_to is None and at.commit_kind not in (CommitKind.COMPACT, CommitKind.ANALYZE):
                return True
            try:
                at = self._file_store.snapshots.load(at.id - 1 if rolled_back_to is None else rolled_back_to)
            except (NotFoundError, SnapshotExpiredError):
                # The commits between them have expired.
                return True
        return at is None or at.id != target.id

    def _check_columns(self, base: Snapshot | None) -> None:
        """Raise ``_AlteredError`` if rows may have columns that were added after this process looked at the schema."""
        if self._file_store.may_lack_columns_of(base):
            raise _AlteredError

    def _refuse_another_layout(self, target: Snapshot) -> None:
        was = self._file_store.version(target.schema_id)
        if layout_of(was) != layout_of(self._file_store.schema):
            message = (
                f"table {self._table} was rewritten after snapshot {target.id} was made, into other buckets or with a "
                f"key, so its files can't come back. Overwrite the table with the rows of VERSION AS OF {target.id}"
            )
            raise InvalidInputError(message)

    def _are_others(self, offsets: SourceOffsets, than_of: Snapshot | None) -> bool:
        # Compare the properties: they include the topics' ids, which comparing offsets ignores.
        return offsets.to_properties() != self._commit.source_offsets(than_of).to_properties()

    def _with_kinds(self, rows: pa.RecordBatch, kinds: pa.Array) -> pa.RecordBatch:
        return rows.append_column(self._row_kind_column, pa.array(ROW_KIND_SYMBOLS).take(kinds))


@dataclass(frozen=True, slots=True)
class _Restoration:
    """What ``TableRestore.restore`` is asked for."""

    target: Snapshot
    tracked: bool
    commit_user: str
    commit_identifier: int
    properties: Mapping[str, str]
    guard: Guard | None
    history: SnapshotHistory | None


class _MovedError(StorageError):
    """Another writer has committed since the contents were compared."""


class _AlteredError(StorageError):
    """The content that is replaced was written under a newer schema: streams need its rows with all columns."""


def _bucket_count(partition: bytes, *contents: LiveFiles) -> int:
    """Return the partition's bucket count in the last of ``contents`` that has the partition."""
    return [count for live in contents if (count := live.bucket_count(partition)) is not None][-1]
