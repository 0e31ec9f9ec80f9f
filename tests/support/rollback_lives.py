"""Random histories of tables that two engines write, compact, overwrite and expire, with rollbacks in between."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from storage_lib import InvalidInputError
from tests.support.random_life import ADD, Life
from tests.support.shared_table import IDENTIFIER, Change, arrow_of

_STEPS = [
    *["append"] * 4,
    *["compact"] * 6,
    *["roll back"] * 6,
    *["branch"] * 2,
    "overwrite",
    "tag",
    "expire",
]


@dataclass
class RollbackLife(Life):
    """History in which both engines must agree with the model after each step. ``past`` is the model by snapshot."""

    past: dict[int, list[Change]] = field(default_factory=dict)
    tagged: dict[str, list[Change]] = field(default_factory=dict)
    branched: list[Change] | None = None
    may_publish: bool = False
    is_streamed: bool = True

    def _more_options(self) -> dict[str, str]:
        bucket = str(self.drawn.choice(["1", "1", "2", "-1"]))
        file_format = str(self.drawn.choice(["parquet", "parquet", "orc", "avro"]))
        more = {"bucket": bucket, "file.format": file_format}
        if self.drawn.random() < 0.3:
            threshold = str(self.drawn.choice(["1 b", "10 kb"]))
            more |= {"file-index.bloom-filter.columns": "a", "file-index.in-manifest-threshold": threshold}
        return more

    def run(self, steps: int = 12) -> None:
        """Run random steps by either engine, and at the end a compaction by each."""
        for _ in range(steps):
            self._compare(is_told=self._drawn_step() and self.is_streamed)
            self.past[self._newest] = list(self.changes)
        self.told.append("both compact")
        self.table.ours().compact(full=True)
        self.table.compact_by_java()
        self._compare(is_told=False)

    def _compare(self, *, is_told: bool) -> None:
        if not self.is_streamed:
            # Streams contain only tracked changes, from retained snapshots.
            producer, self.producer = self.producer, "none"
            super()._compare(is_told=False)
            self.producer = producer
            return
        super()._compare(is_told=is_told)

    def _drawn_step(self) -> bool:
        """Run one random step; return whether the changelog is complete afterwards."""
        match str(self.drawn.choice(_STEPS)):
            case "append":
                self.may_publish = False
                # Buckets without a row of the append are not compacted.
                return self._append() and self.producer != "full-compaction"
            case "compact":
                return self._compact()
            case "roll back":
                return self._roll_back()
            case "overwrite":
                self.may_publish = False
                return self._overwrite() if self.drawn.random() < 0.5 else self._overwrite_by_java()
            case "tag":
                self._tag()
            case "branch":
                self._branch()
            case "expire":
                self._expire()
        return False

    def _roll_back(self) -> bool:
        ours = self.table.ours()
        kept = set(ours.inspect.snapshots()["snapshot_id"].to_pylist())
        self.past = {each: changes for each, changes in self.past.items() if each in kept}
        tracked = False
        if self.tagged and self.drawn.random() < 0.3:
            tag = str(self.drawn.choice(sorted(self.tagged)))
            self.told.append(f"roll back to tag {tag}")
            made = ours.rollback_to(tag=tag, change_tracking=False)
            self.changes = list(self.tagged[tag])
        elif self.past:
            recent = sorted(self.past)[-3:]
            snapshot_id = int(self.drawn.choice(recent if self.drawn.random() < 0.7 else sorted(self.past)))
            tracked = self.producer != "none" and bool(self.drawn.random() < 0.5)
            self.told.append(f"roll back to {snapshot_id}{', tracked' if tracked else ''}")
            made = ours.rollback_to(snapshot_id=snapshot_id, change_tracking=tracked)
            self.changes = list(self.past[snapshot_id])
        else:
            return False
        if made is None:
            return False
        self.may_publish = False
        self.was_overwritten = True
        self.is_streamed = self.is_streamed and tracked
        # The stream still lacks rows that were not compacted at that snapshot.
        return self.producer != "full-compaction"

    def _overwrite_by_java(self) -> bool:
        rows = {row[0]: (kind, row) for kind, row in self._drawn_changes(by_us=False) if kind is ADD}
        self.told.append(f"java overwrites {[row for _, row in rows.values()]}")
        if rows:
            values = [row for _, row in rows.values()]
            self.core.write(self.home, IDENTIFIER, values, self.table.schema, overwrite={})
            self.changes = list(rows.values())
            self.is_streamed = False
        return True

    def _tag(self) -> None:
        name = f"t{len(self.told)}"
        if not self._newest:
            return
        if self.drawn.random() < 0.5:
            self.told.append(f"tag {name}")
            self.table.ours().tags.create(name)
        else:
            self.told.append(f"java tags {name}")
            self.core.tag(self.home, IDENTIFIER, name, self._newest)
        self.tagged[name] = list(self.changes)

    def _branch(self) -> None:
        """Create a branch, or write to it and publish it, unless the table has changed in the meantime."""
        ours = self.table.ours()
        if self.branched is None:
            if self._newest:
                self.told.append("branch")
                # The other engine's expiry respects tags but not branches.
                ours.tags.create("of-b")
                ours.branches.create("b", tag="of-b")
                self.branched, self.may_publish = list(self.changes), True
            return
        held, self.changes = self.changes, self.branched
        changes = self._drawn_changes(by_us=True)
        self.changes = held
        self.told.append(f"publish a branch with {[(kind.symbol, *row) for kind, row in changes]}")
        branch = ours.branches.open("b")
        branch.append(arrow_of(branch, changes))
        if self.drawn.random() < 0.5:
            ours.branches.open("b").compact(full=True)
        if self.may_publish:
            ours.branches.fast_forward("b", change_tracking=False)
            self.changes = [*self.branched, *changes]
            self.is_streamed = False
        else:
            with pytest.raises(InvalidInputError, match=r"has changed since|not known whether"):
                ours.branches.fast_forward("b", change_tracking=False)
        ours.branches.delete("b")
        ours.tags.delete("of-b")
        self.branched = None

    def _expire(self) -> None:
        kept = int(self.drawn.integers(1, 4))
        # Tables of this library are pinned against expiry by the other engine, which would delete restored files.
        by_us = self.is_ours or bool(self.drawn.random() < 0.5)
        self.told.append(f"{'we' if by_us else 'java'} expire but {kept}")
        if by_us:
            self.table.ours().maintenance.expire_snapshots(retain_last=kept)
        else:
            self.core.expire(self.home, IDENTIFIER, retain_max=kept)
        self.is_streamed = False

    @property
    def _newest(self) -> int:
        return self.table.ours().context.file_store.snapshots.latest_id() or 0
