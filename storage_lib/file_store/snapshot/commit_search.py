"""Search for the snapshot of a commit, so that the same (user, identifier) commits only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot

_BATCH = 64


class CommitSearch:
    """Reads every snapshot once, newest first, and remembers its identity.

    The first search of a process may read the whole history; later ones only read snapshots committed since.
    Not thread-safe.
    """

    def __init__(
        self, *, load_all: Callable[[Sequence[int]], list[Snapshot]], earliest_id: Callable[[], int | None]
    ) -> None:
        self._load_all = load_all
        self._earliest_id = earliest_id
        self._ids: dict[tuple[str, int], int] = {}
        self._compactions: set[int] = set()
        self._smallest: dict[str, int] = {}
        self._low: int | None = None
        self._high = 0

    def find(self, commit_user: str, commit_identifier: int, latest_id: int, *, ascending: bool) -> int | None:
        """Return the id of this identity's snapshot, at most ``latest_id``; see ``SnapshotHistory.find_commit``."""
        if self._low is None:
            self._low, self._high = latest_id + 1, latest_id
        bottom = self._earliest_id() or 1
        if latest_id > self._high:
            self._index(list(range(latest_id, max(self._high + 1, bottom) - 1, -1)))
            self._high = latest_id
        identity = (commit_user, commit_identifier)
        while self._low > bottom and not self._is_settled(identity, ascending=ascending):
            stop = max(bottom, self._low - _BATCH)
            self._index(list(range(self._low - 1, stop - 1, -1)))
            self._low = stop
        return self._ids.get(identity)

    def _is_settled(self, identity: tuple[str, int], *, ascending: bool) -> bool:
        found = self._ids.get(identity)
        if found is not None and found not in self._compactions:
            return True
        user, identifier = identity
        return ascending and self._smallest.get(user, identifier) < identifier

    def _index(self, snapshot_ids: list[int]) -> None:
        for snapshot in self._load(snapshot_ids):
            user, identifier = snapshot.commit_user, snapshot.commit_identifier
            self._smallest[user] = min(identifier, self._smallest.get(user, identifier))
            known = self._ids.get((user, identifier))
            if known is None or known in self._compactions:
                self._ids[user, identifier] = snapshot.id
            if snapshot.commit_kind is CommitKind.COMPACT:
                self._compactions.add(snapshot.id)

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
