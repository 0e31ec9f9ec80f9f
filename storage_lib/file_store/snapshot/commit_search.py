"""Search for the snapshot of a commit, so that the same (user, identifier) commits only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.commit_record import CommitRecord, is_in_force
from storage_lib.file_store.snapshot.past_commits import PastCommits
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot

_BATCH = 64


class CommitSearch:
    """Reads every snapshot once, newest first, and remembers its commit; then the commits of expired snapshots.

    The first search of a process may read the whole history; later ones only read snapshots committed since.
    Not thread-safe.
    """

    def __init__(
        self,
        *,
        load_all: Callable[[Sequence[int]], list[Snapshot]],
        earliest_id: Callable[[], int | None],
        past_commits: Callable[[], PastCommits],
    ) -> None:
        self._load_all = load_all
        self._earliest_id = earliest_id
        self._past_commits = past_commits
        self._records: dict[int, CommitRecord] = {}
        self._ids: dict[tuple[str, int], list[int]] = {}
        self._rollbacks: dict[int, int] = {}
        self._smallest: dict[str, int] = {}
        # Every snapshot from ``_low`` to ``_high`` is known, and all below ``_past``.
        self._low = 1
        self._high = 0
        self._past = 1

    def find(self, commit_user: str, commit_identifier: int, latest_id: int, *, ascending: bool) -> CommitRecord | None:
        """Return the commit of this identity that is in force; see ``SnapshotHistory.find_commit``."""
        self._read_since(latest_id)
        identity = (commit_user, commit_identifier)
        while not self._is_settled(identity, ascending=ascending):
            if self._low <= self._past:
                break
            bottom = self._earliest_id() or 1
            if self._low > bottom:
                self._read_down(bottom)
            else:
                past = self._past_commits()
                self._past = past.below
                for record in past.records:
                    self._add(record)
        return self._found(identity)

    def newest(self) -> CommitRecord | None:
        """Return the commit of the newest snapshot that is known."""
        return self._records.get(self._high)

    def record(self, snapshot_id: int) -> CommitRecord | None:
        """Return the commit of an expired snapshot; None if it is not kept any more."""
        if snapshot_id not in self._records:
            for record in self._past_commits().records:
                self._add(record)
        return self._records.get(snapshot_id)

    def forget(self) -> None:
        """Forget all commits, for another history."""
        self._low, self._high, self._past = 1, 0, 1
        for known in (self._records, self._ids, self._rollbacks, self._smallest):
            known.clear()

    def _read_since(self, latest_id: int) -> None:
        if latest_id <= self._high:
            return
        read = latest_id + 1
        if self._high and self._high >= (self._earliest_id() or 1) - 1:
            read = self._index(list(range(latest_id, self._high, -1)))
        if read > self._high + 1:
            # Nothing was known, or snapshots that were never read have expired. They may have rolled back known ones.
            self.forget()
            self._low = latest_id + 1
        self._high = latest_id

    def _read_down(self, bottom: int) -> None:
        stop = max(bottom, self._low - _BATCH)
        read = self._index(list(range(self._low - 1, stop - 1, -1)))
        if read == self._low and (self._earliest_id() or 1) <= bottom:
            read = stop  # their files are missing, although they have not expired
        self._low = read

    def _is_settled(self, identity: tuple[str, int], *, ascending: bool) -> bool:
        found = self._found(identity)
        if found is not None and found.kind is not CommitKind.COMPACT:
            return True
        user, identifier = identity
        return ascending and self._smallest.get(user, identifier) < identifier

    def _found(self, identity: tuple[str, int]) -> CommitRecord | None:
        """Return the newest commit in force, of an append and its compaction the append."""
        found = None
        for snapshot_id in sorted(self._ids.get(identity, ()), reverse=True):
            record = self._records[snapshot_id]
            if is_in_force(snapshot_id, self._high, self._rollbacks):
                if record.kind is not CommitKind.COMPACT:
                    return record
                found = found or record
        return found

    def _index(self, snapshot_ids: list[int]) -> int:
        """Index snapshots, newest first; return the lowest id that was read, or the one above if none was."""
        lowest = snapshot_ids[0] + 1
        for snapshot in self._load(snapshot_ids):
            self._add(CommitRecord.of(snapshot))
            lowest = snapshot.id
        return lowest

    def _add(self, record: CommitRecord) -> None:
        user, identifier = record.user, record.identifier
        if record.snapshot_id not in self._records:
            self._ids.setdefault((user, identifier), []).append(record.snapshot_id)
        self._records[record.snapshot_id] = record
        self._smallest[user] = min(identifier, self._smallest.get(user, identifier))
        if record.rolled_back_to is not None:
            self._rollbacks[record.snapshot_id] = record.rolled_back_to

    def _load(self, snapshot_ids: list[int]) -> list[Snapshot]:
        try:
            return self._load_all(snapshot_ids)
        except (SnapshotExpiredError, NotFoundError):
            # The oldest ones expired meanwhile: use those that still exist.
            loaded = []
            for snapshot_id in snapshot_ids:
                try:
                    loaded += self._load_all([snapshot_id])
                except (SnapshotExpiredError, NotFoundError):
                    break
            return loaded
