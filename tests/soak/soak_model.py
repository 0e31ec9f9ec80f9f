"""What the soak's table has to hold: every commit is a function of its writer's name and number, and of nothing else.

So the history of snapshots, which has both, determines the table at each snapshot and the records of the log.
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
"""The commit user of the query that writes; its batch n is commit n + 1."""
BATCH, OVERWRITE, UNTRACKED = "batch", "overwrite", "untracked"
WRITERS = (*STREAMS, BATCH, OVERWRITE, UNTRACKED)
LAST = "last"
OVERWRITTEN, SILENT = "b", "u"
"""The partitions that are overwritten: told to the log, and not told."""

_IDS = 40
_REPAIR = "log-repair-"
Key = tuple[str, int]
Told = tuple[Key, int | None]
"""A key and its new price; None: it is gone."""


def changes_of(seed: int, name: str, number: int) -> list[str]:
    """What commit ``number`` of a writer holds: ``"+U a 7 1001"``; no key twice, every price once in all commits."""
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
    """The same as Arrow rows."""
    return rows(*changes_of(seed, name, number))


@dataclass
class SoakModel:
    """The table after the snapshots that were given to ``follow``, and what the log holds by then, key by key."""

    seed: int
    content: dict[Key, int] = field(default_factory=dict)
    told: dict[Key, list[int | None]] = field(default_factory=dict)
    tellers: dict[Key, list[str]] = field(default_factory=dict)
    """The snapshots that told it."""
    newest: dict[str, int] = field(default_factory=dict)
    """The number of the newest commit of each writer."""
    commits: int = 0
    compactions: int = 0
    repairs: int = 0

    def follow(self, snapshot: Snapshot) -> None:
        """Take the next snapshot in; ``AssertionError`` for a commit that is not expected there."""
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
        # An overwrite that changes nothing makes no snapshot; everybody else's commits have to be there without a gap.
        assert number == last + 1 or name == OVERWRITE, f"snapshot {snapshot.id}: {name} commits {number} after {last}"
        self.newest[name] = number
        self.commits += 1
        for key, price in self._told_by(name, number):
            if price is None:
                self.content.pop(key, None)
            else:
                self.content[key] = price
            if name != UNTRACKED:
                self.told.setdefault(key, []).append(price)
                self.tellers.setdefault(key, []).append(f"{snapshot.id} ({name} {number})")

    def _told_by(self, name: str, number: int) -> list[Told]:
        told = [_told(change) for change in changes_of(self.seed, name, number)]
        if name not in (OVERWRITE, UNTRACKED):
            return told
        kept = {key for key, _ in told}
        gone = [key for key in self.content if key[0] == told[0][0][0] and key not in kept]
        return [*((key, None) for key in gone), *told]


def _told(change: str) -> Told:
    kind, partition, id_, price = change.split()
    return (partition, int(id_)), None if kind == "-D" else int(price)
