"""Optimistic commit without locks: the writer that creates the next snapshot file wins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias
from zlib import crc32

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
    StorageError,
    UnavailableError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, CommitMessage, Committable
from storage_lib.file_store.committing.commit_changes import (
    appended_by,
    changelog_of,
    compacted_by,
    deleted,
    looked_up_by,
    only_compaction,
)
from storage_lib.file_store.committing.conflict import (
    ComparableKeyOf,
    check_looked_up_are_live,
    check_no_conflict,
    check_vectors_are_whole,
)
from storage_lib.file_store.committing.restored_files import RestoredFiles
from storage_lib.file_store.committing.snapshot_draft import Restored, SnapshotDraft
from storage_lib.file_store.committing.snapshot_view import SnapshotView
from storage_lib.file_store.manifest.hash_index import HashIndexChange
from storage_lib.file_store.manifest.index_manifest import Bucket
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.merge_tree.increment import BucketVectors
from storage_lib.file_store.planning.live_files import LiveFiles
from storage_lib.file_store.scan import FileStoreScan
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.io.after_commit import after_commit
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.numbered_files import DisplacedError
from storage_lib.schema.filter.predicate import Predicate

Guard: TypeAlias = Callable[[Snapshot | None], None]
"""Check called with the current newest snapshot right before each attempt to create the next; may raise."""

PropertiesOf: TypeAlias = Callable[[Snapshot | None], Mapping[str, str]]
"""Return the properties of the next snapshot, given the one before it (None for a table without a commit)."""

ChangesOf: TypeAlias = Callable[[Snapshot | None], Sequence[ManifestEntry]]

_ATTEMPTS = 100
_LOOKUPS = 5
_PAUSE_SECONDS_MIN = 0.002
_PAUSE_SECONDS_MAX = 0.1


class FileStoreCommit:
    """Commits messages by creating snapshots.

    1. If a snapshot with this (user, identifier) exists, return it.
    2. Read the newest snapshot N. Check the changes against its live files (``conflict.py``).
    3. Write the manifest of the changes, the delta list, and the base list (N's base and delta, occasionally folded).
    4. Check the guard, then create ``snapshot-<N+1>`` if absent: committed, or another writer was faster.
    5. If another writer was faster: back off, restart at 1; only the base manifest list has to be rewritten.
    6. If the response was lost: check whether the snapshot exists and is ours before deciding anything.

    A failed commit deletes its manifests; a commit of unknown outcome keeps them. Data files are left for the caller to
    abort. Messages with new rows and a compaction become two snapshots, the rows first; if the compaction then
    conflicts, it is dropped with its files, and the rows stay. Safe to use from several threads.
    """

    def __init__(
        self,
        *,
        table: str,
        environment: Environment,
        snapshots: SnapshotHistory,
        scan: FileStoreScan,
        new_draft: Callable[[], SnapshotDraft],
        new_restore: Callable[[Snapshot], RestoredFiles],
        schema_id: int,
        check_layout: Guard,
        comparable_key: ComparableKeyOf | None,
        abort: Callable[[Sequence[CommitMessage]], None],
        check_table: Callable[[], None],
        view: SnapshotView | None = None,
    ) -> None:
        """``view`` follows each snapshot that is created here."""
        self._view = view
        self._table = table
        self._environment = environment
        self._snapshots = snapshots
        self._scan = scan
        self._new_draft = new_draft
        self._new_restore = new_restore
        self._schema_id = schema_id
        self._check_layout = check_layout
        self._comparable_key = comparable_key
        self._abort = abort
        self._check_table = check_table

    def commit(
        self,
        committable: Committable,
        *,
        guard: Guard | None = None,
        properties_of: PropertiesOf | None = None,
        identifiers_ascend: bool = False,
        is_overwrite: bool = False,
    ) -> Snapshot:
        """Commit an append, a compaction or both; without messages, a snapshot that only carries properties.

        Set ``is_overwrite`` for an overwrite even if it replaces nothing, since its files are not at level 0.
        Returns the new snapshot, or the one committed earlier under this identity. Every snapshot gets
        ``properties_of(previous)``; the snapshot with the rows also gets the committable's own properties, which take
        precedence.

        Raises ``CommitConflictError`` if files to delete are no longer live, ``UnavailableError`` if other writers
        commit too fast or storage is unavailable, ``CommitOutcomeUnknownError`` if the outcome cannot be determined,
        and whatever ``guard`` raises.
        """
        appended = appended_by(committable.messages)
        compacted = compacted_by(committable.messages)
        new_changelog = changelog_of(committable.messages, of_compactions=False)
        request = _Request(
            committable=committable,
            kind=CommitKind.COMPACT,
            changes_of=lambda _: compacted,
            changelog=changelog_of(committable.messages, of_compactions=True),
            guard=guard,
            properties_of=properties_of,
            identifiers_ascend=identifiers_ascend,
        )
        if compacted and not appended and not new_changelog:
            return self._create(request)
        deletes = any(entry.kind is FileKind.DELETE for entry in appended)
        rows_kind = CommitKind.OVERWRITE if deletes or is_overwrite else CommitKind.APPEND
        rows, created = self._create_or_find(
            replace(request, kind=rows_kind, changes_of=lambda _: appended, changelog=new_changelog)
        )
        if compacted and created:
            self._compact_after(request)
        return rows

    def overwrite(
        self,
        committable: Committable,
        *,
        partitions: Collection[bytes] | None = None,
        partition_filter: Predicate | None = None,
        guard: Guard | None = None,
        properties_of: PropertiesOf | None = None,
        identifiers_ascend: bool = False,
    ) -> Snapshot:
        """Replace all live files of some partitions by those of the messages; without messages, drop the partitions.

        The partitions are given by their serialized rows, or by a predicate on partition columns; default: all.
        The live files are determined for each attempt, so this never conflicts with appends or compactions.
        Raises as ``commit``, and ``InvalidInputError`` for a message outside the given partitions.
        """
        appended = appended_by(committable.messages)
        self._refuse_outside(appended, partitions, partition_filter)

        def changes_of(latest: Snapshot | None) -> Sequence[ManifestEntry]:
            live = self._scan.entries(latest, partitions=partitions, partition_filter=partition_filter)
            return (*(deleted(entry) for entry in live), *appended)

        return self._create(
            _Request(
                committable=committable,
                kind=CommitKind.OVERWRITE,
                changes_of=changes_of,
                guard=guard,
                properties_of=properties_of,
                identifiers_ascend=identifiers_ascend,
            )
        )

    def restore(
        self,
        committable: Committable,
        target: Snapshot,
        *,
        guard: Guard | None = None,
        properties_of: PropertiesOf | None = None,
    ) -> Snapshot | None:
        """Restore the content of ``target`` in a new snapshot; return None if the table has that content already.

        ``target`` may be older, or of another branch; the caller has to protect its files from deletion.
        Messages carry changelog files only.
        The live files are determined for each attempt, so this never conflicts. Otherwise raises as ``commit``.
        """
        files = self._new_restore(target)
        if not files.differ(self._scan.live_files(self._snapshots.latest())):
            return None
        request = _Request(
            committable=committable,
            kind=CommitKind.OVERWRITE,
            changes_of=lambda latest: files.upon(latest, self._scan.live_files(latest)),
            guard=guard,
            properties_of=properties_of,
            identifiers_ascend=False,
            restored_of=lambda: Restored(target, files.indexes, shares_files=not files.others_expire),
            changelog=changelog_of(committable.messages, of_compactions=False),
        )
        try:
            restored, is_new = self._create_or_find(request)
        except CommitOutcomeUnknownError:
            # A snapshot may name the copies: keep them.
            raise
        except Exception:
            with suppress(StorageError):
                files.tidy(is_committed=False)
            raise
        with after_commit(f"table {self._table}: deleting copies that lost attempts left"):
            files.tidy(is_committed=is_new)
        return restored

    def add_statistics(
        self, committable: Committable, statistics: str, *, properties_of: PropertiesOf | None = None
    ) -> Snapshot:
        """Commit a snapshot that names a statistics file and changes nothing else. Raises as ``commit``."""
        return self._create(
            _Request(
                committable=committable,
                kind=CommitKind.ANALYZE,
                changes_of=lambda _: (),
                guard=None,
                properties_of=properties_of,
                identifiers_ascend=False,
                statistics=statistics,
            )
        )

    def _create(self, request: _Request) -> Snapshot:
        snapshot, _ = self._create_or_find(request)
        return snapshot

    def _create_or_find(self, request: _Request) -> tuple[Snapshot, bool]:
        """Return the snapshot, and whether this call created it."""
        draft = self._new_draft()
        uuid = self._environment.new_name()
        try:
            for attempt in range(_ATTEMPTS):
                # Search and build on the same newest snapshot: otherwise a retry of this commit could slip in between.
                latest = self._snapshots.latest()
                known = self._committed(request, latest)
                if known is not None:
                    draft.discard(keep=None)
                    return known, False
                created = self._attempt(request, latest, draft, uuid)
                if created is not None:
                    if attempt:  # the snapshot of a first attempt names everything it wrote
                        self._tidy(draft, created)
                    if self._view is not None:
                        self._view.publish(created)
                    return created, True
                self._pause(attempt)
        except CommitOutcomeUnknownError:
            # A snapshot may name these files: keep them.
            raise
        except Exception:
            with suppress(StorageError):
                draft.discard(keep=None)
            raise
        draft.discard(keep=None)
        message = (
            f"table {self._table}: {_ATTEMPTS} attempts to commit lost against other writers. Nothing of this commit "
            "is left; run it again, with fewer writers at once"
        )
        raise UnavailableError(message)

    def _attempt(self, request: _Request, latest: Snapshot | None, draft: SnapshotDraft, uuid: str) -> Snapshot | None:
        """Try once to create the snapshot after ``latest``; None if another writer was faster."""
        self._check_layout(latest)
        try:
            changes = request.changes_of(latest)
            self._check(latest, changes, request)
            written = draft.upon(
                latest,
                changes,
                self._template(request, uuid),
                restored=None if request.restored_of is None else request.restored_of(),
                vectors=request.vectors,
                changelog=request.changelog,
                hash_indexes=request.hash_indexes,
            )
        except (NotFoundError, SnapshotExpiredError):
            if self._snapshots.latest_id() == (None if latest is None else latest.id):
                raise
            return None
        if request.guard is not None:
            request.guard(latest)
        properties = {} if request.properties_of is None else dict(request.properties_of(latest))
        if request.carries_identity:
            properties.update(request.committable.properties)
        snapshot = replace(written, properties=properties)
        self._check_table()
        return snapshot if self._put(snapshot, latest) else None

    def _put(self, snapshot: Snapshot, previous: Snapshot | None) -> bool:
        """Create the snapshot; if the store's response is uncertain, the stored snapshot decides.

        A store may retry a conditional put whose response was lost, and then fail on its own file. So a False does not
        mean that another writer won until the stored snapshot has been compared.
        """
        error: StorageError | None = None
        for attempt in range(_LOOKUPS):
            try:
                if self._snapshots.append_if_absent(snapshot, previous, is_gone=self._is_gone):
                    return True
            except (CommitOutcomeUnknownError, UnavailableError) as raised:
                error = raised
            except DisplacedError:
                # Others have put another history in the place of the one that this was based on.
                self._check_table()
                return False
            try:
                return self._snapshots.load(snapshot.id).uuid == snapshot.uuid
            except NotFoundError:
                # The response was lost and the file does not exist: not created yet, so try again under the same id.
                self._pause(attempt)
            except SnapshotExpiredError:
                # It was created and expired while this process was suspended, or took the place of an expired one.
                created = False if error is None else self._was_created(snapshot)
                if created is not None:
                    return created
                break
            except StorageError as raised:
                # The stored snapshot can't be read: it may be this commit.
                error = CommitOutcomeUnknownError(str(raised))
                self._pause(attempt)
        if isinstance(error, UnavailableError):
            raise error
        message = (
            f"table {self._table}: it is not known whether snapshot {snapshot.id} was created by "
            f"{snapshot.commit_user} (commit {snapshot.commit_identifier}). Repeat the commit under the same identity "
            "to find out; do not delete its files"
        )
        raise CommitOutcomeUnknownError(message) from error

    def _is_gone(self) -> bool:
        try:
            self._check_table()
        except NotFoundError:
            return True
        return False

    def _was_created(self, snapshot: Snapshot) -> bool | None:
        try:
            return self._snapshots.was_created(snapshot)
        except StorageError:
            return None

    def _committed(self, request: _Request, latest: Snapshot | None) -> Snapshot | None:
        committable = request.committable
        if latest is None or not request.carries_identity or committable.commit_identifier == BATCH_COMMIT_IDENTIFIER:
            return None
        return self._snapshots.find_commit(
            committable.commit_user,
            committable.commit_identifier,
            ascending=request.identifiers_ascend,
            up_to=latest.id,
        )

    def _check(self, latest: Snapshot | None, changes: Sequence[ManifestEntry], request: _Request) -> None:
        if not changes:
            return
        live = self._scan.live_files(latest, partitions={entry.partition for entry in changes})
        self._check_changes(live, latest, changes, request.kind, request.vectors, request.looked_up)

    def _check_changes(
        self,
        live: LiveFiles,
        latest: Snapshot | None,
        changes: Sequence[ManifestEntry],
        kind: CommitKind,
        vectors: Mapping[Bucket, BucketVectors],
        looked_up: Sequence[ManifestEntry],
    ) -> None:
        on_top_of = "the empty table" if latest is None else f"snapshot {latest.id}"
        subject = f"table {self._table}: {kind.lower()} on top of {on_top_of}"
        check_no_conflict(
            live,
            changes,
            comparable_key=self._comparable_key,
            is_overwrite=kind is CommitKind.OVERWRITE,
            subject=subject,
        )
        check_vectors_are_whole(live, vectors, subject=subject)
        check_looked_up_are_live(live, looked_up, subject=subject)

    def lost(self, compactions: Sequence[CommitMessage]) -> list[CommitMessage]:
        """Return the compactions that can't be committed now because another writer changed their bucket."""
        latest = self._snapshots.latest()
        live = self._scan.live_files(latest, partitions={message.partition for message in compactions})
        lost = []
        for message in compactions:
            try:
                self._check_changes(
                    live,
                    latest,
                    compacted_by([message]),
                    CommitKind.COMPACT,
                    _vectors_of([message]),
                    looked_up_by([message]),
                )
            except CommitConflictError:
                lost.append(message)
        return lost

    def _compact_after(self, request: _Request) -> None:
        """Commit the compaction that came with new rows. If it fails, the rows stay committed, uncompacted."""
        with after_commit(f"table {self._table}: committing the compaction that came with the rows"):
            try:
                self._create(replace(request, carries_identity=False))
            except CommitOutcomeUnknownError:
                raise
            except Exception as error:
                outputs = [only_compaction(message) for message in request.committable.messages]
                with suppress(StorageError):
                    self._abort(outputs)
                if not isinstance(error, CommitConflictError):
                    raise

    def _template(self, request: _Request, uuid: str) -> Snapshot:
        return Snapshot(
            id=0,
            schema_id=self._schema_id,
            base_manifest_list="",
            delta_manifest_list="",
            commit_user=request.committable.commit_user,
            commit_identifier=request.committable.commit_identifier,
            commit_kind=request.kind,
            time_millis=self._environment.clock.now_millis(),
            total_record_count=0,
            delta_record_count=0,
            watermark=request.committable.newest_watermark,
            statistics=request.statistics,
            uuid=uuid,
        )

    def _refuse_outside(
        self, appended: Sequence[ManifestEntry], partitions: Collection[bytes] | None, matching: Predicate | None
    ) -> None:
        written = {entry.partition for entry in appended}
        outside = set() if partitions is None else written - set(partitions)
        if matching is not None:
            outside |= written - self._scan.matching_partitions(written, matching)
        if outside:
            message = (
                f"table {self._table}: rows for partition {self._scan.partition_text(min(outside))} are outside of the "
                "partitions to overwrite; filter the rows, or name that partition too"
            )
            raise InvalidInputError(message)

    def _pause(self, attempt: int) -> None:
        # New names are random, so racing writers back off differently without another source of randomness.
        chance = crc32(self._environment.new_name().encode()) / 2**32
        longest = min(_PAUSE_SECONDS_MAX, _PAUSE_SECONDS_MIN * 2**attempt)
        self._environment.clock.sleep(longest * (0.5 + chance / 2))

    def _tidy(self, draft: SnapshotDraft, created: Snapshot) -> None:
        with after_commit(f"table {self._table}: deleting what lost attempts left"):
            draft.discard(keep=created)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One snapshot to create. The compaction after an append does not carry the identity's properties."""

    committable: Committable
    kind: CommitKind
    changes_of: ChangesOf
    guard: Guard | None
    properties_of: PropertiesOf | None
    identifiers_ascend: bool
    carries_identity: bool = True
    restored_of: Callable[[], Restored] | None = None
    """Called once the changes are known."""
    statistics: str | None = None
    changelog: Sequence[ManifestEntry] = ()

    @property
    def looked_up(self) -> Sequence[ManifestEntry]:
        """Files that a compaction has read but not replaced."""
        return looked_up_by(self.committable.messages) if self.kind is CommitKind.COMPACT else ()

    @property
    def hash_indexes(self) -> Mapping[Bucket, HashIndexChange]:
        """Hash index changes of dynamic buckets; empty for a compaction, since only appends carry them."""
        return {} if self.kind is CommitKind.COMPACT else _hash_indexes_of(self.committable.messages)

    @property
    def vectors(self) -> Mapping[Bucket, BucketVectors]:
        """New deletion vectors of a compaction, by bucket."""
        return _vectors_of(self.committable.messages) if self.kind is CommitKind.COMPACT else {}


def _hash_indexes_of(messages: Sequence[CommitMessage]) -> Mapping[Bucket, HashIndexChange]:
    """Return the hash index changes by bucket; an overwrite has a second message per bucket, for its deletions."""
    brought = (((message.partition, message.bucket), message.hash_index) for message in messages)
    return {bucket: change for bucket, change in brought if change is not None}


def _vectors_of(messages: Sequence[CommitMessage]) -> Mapping[Bucket, BucketVectors]:
    brought = {(message.partition, message.bucket): message.increment.vectors for message in messages}
    return {bucket: vectors for bucket, vectors in brought.items() if vectors is not None}
