"""Snapshots of a table in order: latest, earliest, load, append if absent (docs/format.md, 1.4).

Creating ``snapshot-<N>`` is the only commit point. A snapshot below EARLIEST is expired, even while its file exists.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from storage_lib.built_once import built_once
from storage_lib.errors import (
    AlreadyExistsError,
    NotFoundError,
    SnapshotExpiredError,
    UnavailableError,
    note_outcome,
)
from storage_lib.file_store.snapshot.commit_record import CommitRecord
from storage_lib.file_store.snapshot.commit_search import CommitSearch
from storage_lib.file_store.snapshot.expired_commits import ExpiredCommits
from storage_lib.file_store.snapshot.past_commits import PastCommits
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot, encode_snapshot
from storage_lib.io.environment import Clock
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.numbered_files import DisplacedError, NumberedFiles
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.encoding.moment_text import moment_text

FIRST_ID = 1
_CACHED_MAX = 2048
_LOADS_AT_ONCE = 8
_SECONDS_BETWEEN_LOOKS = 10


class SnapshotHistory:
    """Snapshots are immutable, so each is read once and cached. Safe to use from several threads."""

    def __init__(self, file_io: FileIO, paths: TablePaths, clock: Clock | None = None) -> None:
        """Without a ``clock``, a hint that another engine is overwriting immediately counts as missing.

        Nor does a search for a commit look whether another engine has rolled the table back.
        """
        self._file_io = file_io
        self._clock = clock
        self._looked_at = 0.0
        self._paths = paths
        self._files = NumberedFiles(file_io, paths.snapshot_directory, "snapshot-", hints=True, clock=clock)
        self._cache: OrderedDict[int, Snapshot] = OrderedDict()
        self._lock = threading.Lock()
        self._search_lock = threading.Lock()

    @built_once
    def _commits(self) -> CommitSearch:
        return CommitSearch(load_all=self.load_all, earliest_id=self.earliest_id, past_commits=self.past_commits)

    @built_once
    def _expired_commits(self) -> ExpiredCommits:
        return ExpiredCommits(self._file_io, self._paths)

    def latest_id(self) -> int | None:
        """Return the id of the newest snapshot; None for a table without a commit."""
        return self._files.latest_id()

    def earliest_id(self) -> int | None:
        """Return the id of the oldest snapshot that has not expired; None for a table without a commit."""
        return self._files.earliest_id()

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot; None for a table without a commit."""
        latest_id = self.latest_id()
        if latest_id is None:
            return None
        try:
            return self.load(latest_id)
        except SnapshotExpiredError:
            # It expired just now, or a writer that was suspended created it again, and ended before it read EARLIEST.
            self._files.forget()
            newest = self.latest_id()
            if newest in (None, latest_id):
                raise
            return self.load(newest or latest_id)

    def load(self, snapshot_id: int) -> Snapshot:
        """Return snapshot ``snapshot_id``.

        Raises ``SnapshotExpiredError`` if it is older than the earliest one kept, ``NotFoundError`` if it does not
        exist yet.
        """
        with self._lock:
            cached = self._cache.get(snapshot_id)
            if cached is not None:
                self._cache.move_to_end(snapshot_id)
                return cached
        snapshot = self._read(snapshot_id, self.earliest_id())
        self._remember(snapshot)
        return snapshot

    def are_replaced(self) -> bool:
        """Return whether another engine has rolled the table back, and known snapshots are not those of the table.

        Paimon deletes all snapshots after one, and later commits use their ids again; so the newest known one tells.
        """
        with self._lock:
            newest = self._cache.get(max(self._cache, default=0))
        if newest is None:
            return False
        try:
            return self._read(newest.id, self.earliest_id()) != newest
        except SnapshotExpiredError:
            return False
        except NotFoundError:
            return True

    def holds(self, snapshot: Snapshot) -> bool:
        """Return whether the file of this snapshot exists, and has not become that of another one. Always reads it."""
        try:
            return self._read(snapshot.id, self.earliest_id()) == snapshot
        except (NotFoundError, SnapshotExpiredError):
            return False

    def load_all(self, snapshot_ids: Sequence[int]) -> list[Snapshot]:
        """Return several snapshots in the given order, loaded in parallel; raises as ``load``.

        Asks once, and once more afterwards, which snapshot is the earliest, and not for each of them.
        """
        if len(snapshot_ids) <= _LOADS_AT_ONCE:
            return [self.load(snapshot_id) for snapshot_id in snapshot_ids]
        earliest_id = self.earliest_id()
        with ThreadPoolExecutor(_LOADS_AT_ONCE) as threads:
            loaded = list(threads.map(partial(self._load, earliest_id=earliest_id), snapshot_ids))
        earliest_id, lowest = self.earliest_id(), min(snapshot_ids)
        if earliest_id is not None and lowest < earliest_id:
            # A file that was read may be a stray one, in the place of a snapshot that had expired.
            raise SnapshotExpiredError(_expired_text(self._paths.snapshot_path(lowest), lowest, earliest_id))
        for snapshot in loaded:
            self._remember(snapshot)
        return loaded

    def since(self, base_id: int | None, newest_id: int | None) -> Iterator[tuple[int, Snapshot | None]]:
        """Yield id and snapshot of each commit after ``base_id`` up to ``newest_id``; None for one that has expired.

        An id that is None or 0 is that of the empty table.
        """
        for snapshot_id in range((base_id or 0) + 1, (newest_id or 0) + 1):
            try:
                snapshot = self.load(snapshot_id)
            except SnapshotExpiredError:
                yield snapshot_id, None
            else:
                yield snapshot_id, snapshot

    def up_to(self, snapshot: Snapshot | None) -> Iterator[Snapshot]:
        """Yield a snapshot and those before it, the newest first, down to the earliest that has not expired.

        Ends where an expiry of another process has come meanwhile. For None, of the empty table, there is none.
        """
        earliest_id = None
        while snapshot is not None:
            yield snapshot
            earliest_id = (self.earliest_id() or FIRST_ID) if earliest_id is None else earliest_id
            if snapshot.id <= earliest_id:
                return
            try:
                snapshot = self.load(snapshot.id - 1)
            except SnapshotExpiredError:
                return

    def at(self, timestamp_millis: int) -> Snapshot:
        """Return the newest snapshot made at or before a time (epoch milliseconds).

        Raises ``SnapshotExpiredError`` if that one has expired, ``NotFoundError`` if there never was one.
        """
        found = self.last_before(timestamp_millis + 1)
        earliest_id = self.earliest_id()
        if earliest_id is not None and found >= earliest_id:
            return self.load(found)
        if earliest_id is None or earliest_id == FIRST_ID:
            message = (
                f"the table had no snapshot yet at {moment_text(timestamp_millis)} ({self._paths.root}): "
                "name a later moment"
            )
            raise NotFoundError(message)
        message = (
            f"the snapshots made up to {moment_text(timestamp_millis)} have been expired; the earliest kept is "
            f"{earliest_id}, made at {moment_text(self.load(earliest_id).time_millis)} "
            f"({self._paths.snapshot_directory})"
        )
        raise SnapshotExpiredError(message)

    def last_before(self, timestamp_millis: int) -> int:
        """Return the id of the newest snapshot made before a time, or the earliest kept id minus one if none was.

        Returns zero for a table without a commit. Times never decrease from snapshot to snapshot.
        """
        newest, earliest = self.latest_id(), self.earliest_id()
        if newest is None or earliest is None:
            return 0
        low, high = earliest, newest + 1
        while low < high:
            middle = (low + high) // 2
            try:
                is_before = self.load(middle).time_millis < timestamp_millis
            except SnapshotExpiredError:
                is_before = True  # expired meanwhile: only newer snapshots count
            if is_before:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def begin_with(self, snapshot: Snapshot) -> None:
        """Create this snapshot, under its own id, as the first one of a new history."""
        if not self._files.create(snapshot.id, encode_snapshot(snapshot)):
            message = (
                f"{self._paths.snapshot_path(snapshot.id)} exists already: another process creates the same history"
            )
            raise AlreadyExistsError(message)
        self._files.write_earliest(snapshot.id)

    def find_commit(
        self, commit_user: str, commit_identifier: int, *, ascending: bool = False, up_to: int | None = None
    ) -> Snapshot | None:
        """Return the snapshot committed under this identity; None if it has not been committed, or was rolled back.

        Searches at least every snapshot up to id ``up_to`` (default: the newest), and the commits that are kept of
        expired ones. An expired snapshot has only the facts of ``CommitRecord.snapshot``.
        For a commit that became an append and a compaction, returns the append. The first search may read the whole
        history; ``ascending`` promises that this user's identifiers increase from commit to commit (a stream's batch
        ids), so that the search may stop at the user's newest smaller one.
        """
        latest_id = self.latest_id() if up_to is None else up_to
        if latest_id is None:
            return None
        self._forget_replaced()
        found = self._found(commit_user, commit_identifier, latest_id, ascending=ascending)
        if isinstance(found, Snapshot) and not self.holds(found):
            # Another engine has rolled the table back, by deleting snapshots that are known here.
            self._forget_all()
            found = self._found(commit_user, commit_identifier, latest_id, ascending=ascending)
        return found.snapshot() if isinstance(found, CommitRecord) else found

    def _forget_replaced(self) -> None:
        """Forget all commits if another engine has rolled the table back while this process did not look.

        Others may have committed under the numbers that are known here. A commit notices this by itself: it follows
        upon what it knows.
        """
        now = 0.0 if self._clock is None else self._clock.monotonic()
        is_due, self._looked_at = now - self._looked_at >= _SECONDS_BETWEEN_LOOKS, now
        with self._search_lock:
            newest = self._commits.newest()
        if is_due and newest is not None:
            snapshot = self.load_expired(newest.snapshot_id)
            if snapshot is None or CommitRecord.of(snapshot) != newest:
                self._forget_all()

    def _found(
        self, commit_user: str, commit_identifier: int, latest_id: int, *, ascending: bool
    ) -> Snapshot | CommitRecord | None:
        """Return the snapshot of a commit, or the record of an expired one."""
        with self._search_lock:
            found = self._commits.find(commit_user, commit_identifier, latest_id, ascending=ascending)
        earliest_id = None if found is None else self.earliest_id()
        if found is None or (earliest_id is not None and found.snapshot_id < earliest_id):
            return found
        try:
            return self.load(found.snapshot_id)
        except SnapshotExpiredError:
            return found

    def was_created(self, snapshot: Snapshot) -> bool | None:
        """Return whether this snapshot, whose id has expired, was created before; None if that is not known any more.

        Deletes its file if it was created afterwards: another snapshot had the id.
        """
        with self._search_lock:
            record = self._commits.record(snapshot.id)
        if record is None or record.uuid is None:
            return None
        if record.uuid == snapshot.uuid:
            return True
        stray = self.load_expired(snapshot.id)
        if stray is not None and stray.uuid == snapshot.uuid:
            self.delete_expired(snapshot.id)
        return False

    def past_commits(self) -> PastCommits:
        """Return the commits of expired snapshots, as far as they are kept; raises ``CorruptFileError``."""
        while True:
            earliest_id = self.earliest_id()
            if earliest_id is None or earliest_id == FIRST_ID:
                return PastCommits(below=FIRST_ID)
            try:
                past = self._expired_commits.read(self.load(earliest_id))
            except SnapshotExpiredError:
                past = None
            if past is not None:
                return past
            if self.earliest_id() == earliest_id:
                message = f"the commits of expired snapshots of {self._paths.root} changed while they were read"
                raise UnavailableError(message)

    def keep_commits(self, expiring: Sequence[Snapshot], first_retained: Snapshot, since_millis: int) -> None:
        """Store the commits of snapshots that are about to expire; with identity, back to a time (epoch ms)."""
        commits = self.past_commits().followed_by(expiring, below=first_retained.id, since_millis=since_millis)
        self._expired_commits.write(commits, first_retained)

    def forget_older_commits(self) -> None:
        """Delete the files of commits that an expiry has replaced."""
        earliest_id = self.earliest_id()
        if earliest_id is not None:
            self._expired_commits.delete_below(earliest_id)

    def lists_of_commits(self) -> frozenset[str]:
        """Return what ``expire_below`` needs to know of the time before the snapshots to expire were chosen."""
        return self._expired_commits.names()

    def expire_below(self, snapshot_id: int, lists_before: frozenset[str]) -> list[int]:
        """Make ``snapshot_id`` the earliest; every snapshot below counts as expired when this returns.

        ``lists_before`` is what ``lists_of_commits`` returned before. A faster expiry, which has expired more, stores
        its list of commits before it moves EARLIEST: if one appeared meanwhile, this one may have moved EARLIEST back
        to snapshots whose files are gone, and moves it on again.
        Returns the lower ids whose files still exist, including leftovers of an earlier, interrupted expiry.
        ``delete_expired`` removes their files, after the files that only they name have been deleted.
        """
        self._files.move_earliest(snapshot_id)
        try:
            earliest_id = snapshot_id
            while (later := self._newest_of_others(earliest_id, lists_before)) is not None:
                self._files.write_earliest(later)
                earliest_id = later
        except Exception as error:
            note_outcome(error, committed=True)
            raise
        with self._lock:
            for expired in [known for known in self._cache if known < earliest_id]:
                del self._cache[expired]
        try:
            return [known for known in self._files.ids() if known < snapshot_id]
        except Exception as error:
            note_outcome(error, committed=True)
            raise

    def forget_earliest(self) -> None:
        """Delete EARLIEST, which is optional, because it was written for another history."""
        self._files.forget_earliest()

    def _newest_of_others(self, earliest_id: int, lists_before: frozenset[str]) -> int | None:
        appeared = self._expired_commits.names() - lists_before
        return self._expired_commits.newest_of(appeared, earliest_id, self.load)

    def ids(self) -> list[int]:
        """Return the ids of all snapshots whose files exist, expired ones included, ascending."""
        return self._files.ids()

    def load_expired(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot that counts as expired but whose file still exists; None if it does not."""
        try:
            data = self._files.load(snapshot_id)
        except NotFoundError:
            return None
        return decode_snapshot(data, self._paths.snapshot_path(snapshot_id), snapshot_id=snapshot_id)

    def delete_expired(self, snapshot_id: int) -> None:
        """Delete the file of an expired snapshot, if it exists."""
        self._file_io.delete(self._paths.snapshot_path(snapshot_id), below=self._paths.root)

    def append_if_absent(
        self, snapshot: Snapshot, previous: Snapshot | None = None, *, is_gone: Callable[[], bool] = lambda: False
    ) -> bool:
        """Create the next snapshot after ``previous``; False if another writer has taken its id.

        Raises ``DisplacedError`` if ``previous`` is not the snapshot before any more, or ``is_gone``: the history was
        deleted, and maybe another one created; what is known of it is forgotten. Raises ``CommitOutcomeUnknownError``
        if the store's response was lost.
        """

        def follows(content: bytes) -> bool:
            return decode_snapshot(content, self._paths.snapshot_path(snapshot.id - 1)) == previous

        try:
            is_created = self._files.create(
                snapshot.id,
                encode_snapshot(snapshot),
                follows=None if previous is None else follows,
                is_gone=is_gone,
            )
        except DisplacedError:
            self._forget_all()
            raise
        if is_created:
            self._remember(snapshot)
        return is_created

    def _forget_all(self) -> None:
        with self._lock:
            self._cache.clear()
        with self._search_lock:
            self._commits.forget()

    def _load(self, snapshot_id: int, *, earliest_id: int | None) -> Snapshot:
        with self._lock:
            cached = self._cache.get(snapshot_id)
        return self._read(snapshot_id, earliest_id) if cached is None else cached

    def _read(self, snapshot_id: int, earliest_id: int | None) -> Snapshot:
        path = self._paths.snapshot_path(snapshot_id)
        if snapshot_id < FIRST_ID:
            message = f"there is no snapshot {snapshot_id} ({path}); their ids begin at {FIRST_ID}"
            raise NotFoundError(message)
        if earliest_id is not None and snapshot_id < earliest_id:
            raise SnapshotExpiredError(_expired_text(path, snapshot_id, earliest_id))
        try:
            data = self._files.load(snapshot_id)
        except NotFoundError:
            earliest_id = self.earliest_id()
            if earliest_id is not None and snapshot_id < earliest_id:
                raise SnapshotExpiredError(_expired_text(path, snapshot_id, earliest_id)) from None
            newest = self.latest_id()
            others = "the table has none yet" if newest is None else f"the newest is {newest}"
            message = f"there is no snapshot {snapshot_id} ({path}); {others}"
            raise NotFoundError(message) from None
        return decode_snapshot(data, path, snapshot_id=snapshot_id)

    def _remember(self, snapshot: Snapshot) -> None:
        with self._lock:
            self._cache[snapshot.id] = snapshot
            while len(self._cache) > _CACHED_MAX:
                self._cache.popitem(last=False)


def _expired_text(path: str, snapshot_id: int, earliest_id: int) -> str:
    return (
        f"snapshot {snapshot_id} ({path}) has been expired; the earliest kept is {earliest_id}: take that or a newer "
        "one, or a tag"
    )
