"""Commits of expired snapshots: which are kept, and for how long (docs/guarantees.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from storage_lib.file_store.snapshot.commit_record import CommitRecord
from storage_lib.file_store.snapshot.snapshot import Snapshot

NEWEST_KEPT = 1000
"""Commits that are kept whatever their age, with or without an identity: a stream may be stopped for long."""
_PER_USER_MAX = 10_000
_KEPT_MAX = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCommits:
    """Commits of all snapshots below ``below``, ascending, as far as they are kept."""

    below: int
    records: tuple[CommitRecord, ...] = ()

    def followed_by(self, expiring: Iterable[Snapshot], *, below: int, since_millis: int) -> PastCommits:
        """Return these commits and those of the next snapshots, without what is older than ``since_millis``."""
        known = {each.snapshot_id: each for each in self.records}
        known |= {each.id: CommitRecord.of(each) for each in expiring}
        records = [known[each] for each in sorted(known) if each < below]
        return PastCommits(below=below, records=tuple(_kept(records, since_millis)))


def _kept(records: Sequence[CommitRecord], since_millis: int) -> Iterator[CommitRecord]:
    """Yield the newest records, older ones with an identity that are young enough, and the rollbacks that void them."""
    of_user: dict[str, int] = {}
    kept: set[int] = set()
    for age, record in enumerate(reversed(records)):
        count = of_user[record.user] = of_user.get(record.user, 0) + 1
        is_repeatable = record.has_identity and record.time_millis >= since_millis and count <= _PER_USER_MAX
        if age < NEWEST_KEPT or (is_repeatable and len(kept) < _KEPT_MAX):
            kept.add(record.snapshot_id)
    oldest = min(kept, default=0)
    for record in records:
        if record.snapshot_id in kept or (record.rolled_back_to is not None and record.snapshot_id > oldest):
            yield record
