"""Expected content of the soak's table: each commit is a function of its writer's name and number alone.

Therefore the history of snapshots, which records both, determines the table at each snapshot and the log's records.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from tests.support.orders_table import rows

STREAMS = ("stream-1", "stream-2")
SPARK = "spark"
SPARK_QUERY_ID = "5eed5eed-0000-4000-8000-000000000000"
"""Commit user of the writing Spark query; its batch n is commit n + 1."""
BATCH, OVERWRITE, UNTRACKED = "batch", "overwrite", "untracked"
WRITERS = (*STREAMS, BATCH, OVERWRITE, UNTRACKED)
LAST = "last"
OVERWRITTEN, SILENT = "b", "u"
"""Partitions that are overwritten, with and without change tracking."""

_IDS = 40
_REPAIR = "log-repair-"
Key = tuple[str, int]
Told = tuple[Key, int | None]
"""A key and its new price; None if the key was deleted."""


def changes_of(seed: int, name: str, number: int) -> list[str]:
    """Return the changes of commit ``number``: ``"+U a 7 1001"``; keys are unique in it, prices in all commits."""
    dice = random.Random(f"{seed} {name} {number}")  # noqa: S311  chance, not secrets
    place = (*WRITERS, LAST, SPARK).index(name)
    price = (place * 1_000_000 + number) * 100
    partitions = {OVERWRITE: OVERWRITTEN, UNTRACKED: SILENT}.get(name, "ab")
    keys = [(partition, id_) for partition in partitions for id_ in range(_IDS)]
    replaces = name in (OVERWRITE, UNTRACKED)
    changes = []
    for at, (partition, id_) in enumerate(dice.sample(keys, dice.randint(1, 12))):
        kind = "+I" if replaces else dice.choice(["+I", "+U", "+U", "-D"])
        changes.append(f"{kind} {partition} {id_} {price + at}")
    return changes


def rows_of(seed: int, name: str, number: int) -> pa.Table:
    """Return the same changes as Arrow rows."""
    return rows(*changes_of(seed, name, number))


@dataclass
class SoakModel:
    """Expected table and log, by key, after the snapshots that were passed to ``follow``."""

    seed: int
    content: dict[Key, int] = field(default_factory=dict)
    told: dict[Key, list[int | None]] = field(default_factory=dict)
    tellers: dict[Key, list[str]] = field(default_factory=dict)
    """Snapshots that logged the changes of each key."""
    newest: dict[str, int] = field(default_factory=dict)
    """Number of each writer's newest commit."""
    commits: int = 0
    compactions: int = 0
    repairs: int = 0

    def follow(self, snapshot: Snapshot) -> None:
        """Apply the next snapshot; raise ``AssertionError`` for an unexpected commit."""
        name, number = snapshot.commit_user, snapshot.commit_identifier
        if name == SPARK_QUERY_ID:
            name, number = SPARK, number + 1
        if snapshot.commit_kind is CommitKind.COMPACT:
            self.compactions += 1
            return
        if name.startswith(_REPAIR):
            self.repairs += 1
            return
        assert name in (*WRITERS, LAST, SPARK), f"snapshot {snapshot.id} was made by {name}"
        last = self.newest.get(name, 0)
        assert number > last, f"snapshot {snapshot.id}: {name} commits {number} after {last}"
        # An overwrite that changes nothing creates no snapshot; all other writers' commits must be consecutive.
        assert number == last + 1 or name == OVERWRITE, f"snapshot {snapshot.id}: {name} commits {number} after {last}"
        self.newest[name] = number
        self.commits += 1
        for key, price in self._offsets_reported_by(name, number):
            if price is None:
                self.content.pop(key, None)
            else:
                self.content[key] = price
            if name != UNTRACKED:
                self.told.setdefault(key, []).append(price)
                self.tellers.setdefault(key, []).append(f"{snapshot.id} ({name} {number})")

    def _offsets_reported_by(self, name: str, number: int) -> list[Told]:
        told = [_told(change) for change in changes_of(self.seed, name, number)]
        if name not in (OVERWRITE, UNTRACKED):
            return told
        kept = {key for key, _ in told}
        gone = [key for key in self.content if key[0] == told[0][0][0] and key not in kept]
        return [*((key, None) for key in gone), *told]


def _told(change: str) -> Told:
    kind, partition, id_, price = change.split()
    return (partition, int(id_)), None if kind == "-D" else int(price)
