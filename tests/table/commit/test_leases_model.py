"""Every interleaving of two writers that alternate on one bucket, with takeovers, a crash and a broker time-out.

A model of ``TableLeases``, ``TableCommit`` and ``LogRepair`` small enough for exhaustive exploration: each writer
commits rows, one per lease; a takeover may happen at any moment (the holder may merely be slow), one writer may crash
at any step, and Kafka may time out an open transaction at any step. In every quiescent state, after one more opener:
each row is in exactly one snapshot and once in the committed log, in the same order, and every snapshot plus the log
after its offsets (without repairs of it) equals the final content. Removing any rule produces a counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

Row = tuple[int, int]
RULES = frozenset({"between", "repair", "repair-until-committed", "end-before-begin", "base-is-what-was-looked-at"})


class Snap(NamedTuple):
    row: Row | None  # None: a commit that only repairs the log
    epoch: int
    position: int
    covers_from: int


class Entry(NamedTuple):
    row: Row
    epoch: int
    status: str  # open, committed, aborted
    repairs: int  # snapshot id, 0 for a commit's own row


class Writer(NamedTuple):
    step: str = "idle"
    done: int = 0
    holds_newest_lease: bool = False
    base: int = 0
    epoch: int = 0
    position: int = 0
    missing: tuple[int, ...] = ()
    covers_from: int = 0


class World(NamedTuple):
    snaps: tuple[Snap, ...] = ()
    log: tuple[Entry, ...] = ()
    epoch: int = 0
    is_open: bool = False
    writers: tuple[Writer, ...] = (Writer(), Writer())
    crashes_left: int = 1
    timeouts_left: int = 1


def _settle(world: World, epoch: int, status: str) -> World:
    log = tuple(e._replace(status=status) if e.status == "open" and e.epoch == epoch else e for e in world.log)
    return world._replace(log=log, is_open=False)


def _abort_open(world: World) -> World:
    return _settle(world, world.epoch, "aborted") if world.is_open else world


def _end(world: World, epoch: int) -> World:
    return _settle(world, epoch, "committed") if world.is_open and world.epoch == epoch else world


def _begin(world: World) -> World:
    aborted = _abort_open(world)
    return aborted._replace(epoch=aborted.epoch + 1, is_open=True)


def _append(world: World, entries: tuple[Entry, ...]) -> World:
    return world._replace(log=world.log + entries)


def _in_log(world: World, snapshot_id: int) -> bool:
    snap = world.snaps[snapshot_id - 1]
    return any(e.epoch == snap.epoch and e.status == "committed" for e in world.log)


def _find_missing(world: World) -> tuple[tuple[int, ...], int]:
    """LogRepair.find: only the newest lease's snapshot can be incomplete, including its own repairs."""
    newest = len(world.snaps)
    if newest == 0 or _in_log(world, newest):
        return (), 0
    covers_from = world.snaps[newest - 1].covers_from
    ids = range(covers_from + 1, newest + 1)
    return tuple(i for i in ids if world.snaps[i - 1].row is not None), covers_from


class Model:
    def __init__(self, rules: frozenset[str], rows_each: int) -> None:
        self.rules = rules
        self.rows_each = rows_each

    def next_worlds(self, world: World) -> Iterator[World]:
        for index, writer in enumerate(world.writers):
            yield from self._steps(world, index, writer)
            if world.crashes_left and writer.step != "idle":
                crashed = self._put(world, index, Writer(done=writer.done))
                yield crashed._replace(crashes_left=world.crashes_left - 1)
        if world.timeouts_left and world.is_open:
            timed_out = _abort_open(world)
            yield timed_out._replace(timeouts_left=world.timeouts_left - 1, epoch=timed_out.epoch + 1)

    def _put(self, world: World, index: int, writer: Writer) -> World:
        writers = list(world.writers)
        writers[index] = writer
        return world._replace(writers=tuple(writers))

    def _steps(  # noqa: C901, PLR0912  one branch a step, to be read as the protocol
        self, world: World, index: int, writer: Writer
    ) -> Iterator[World]:
        row = (index, writer.done)
        start_over = Writer(done=writer.done)
        match writer.step:
            case "idle" if writer.done < self.rows_each:
                others_lost = tuple(w._replace(holds_newest_lease=False) for w in world.writers)
                mine = writer._replace(step="opened", holds_newest_lease=True)
                yield self._put(world._replace(writers=others_lost), index, mine)
            case "opened":
                yield self._put_in_order(world, index, writer)
            case "repairing":
                begun = _begin(world)
                entries = tuple(
                    Entry(snap_row, begun.epoch, "open", i)
                    for i in writer.missing
                    if (snap_row := begun.snaps[i - 1].row) is not None
                )
                written = _append(begun, entries)
                mine = writer._replace(step="repair-written", epoch=begun.epoch, position=len(written.log))
                yield self._put(written, index, mine)
            case "repair-written":
                yield self._create(world, index, writer, None, writer.covers_from, "repair-created")
            case "repair-created":
                ended = _end(world, writer.epoch)
                again = "repair-until-committed" in self.rules
                yield self._put(ended, index, writer._replace(step="opened" if again else "ordered"))
            case "ordered":
                if any(snap.row == row for snap in world.snaps):
                    yield self._put(world, index, Writer(done=writer.done + 1))
                    return
                begun = _begin(world)
                base = writer.base if "base-is-what-was-looked-at" in self.rules else len(world.snaps)
                mine = writer._replace(step="begun", base=base, epoch=begun.epoch)
                yield self._put(begun, index, mine)
            case "begun":
                if world.epoch != writer.epoch:
                    yield self._put(world, index, start_over)
                    return
                written = _append(world, (Entry(row, writer.epoch, "open", 0),))
                yield self._put(written, index, writer._replace(step="written", position=len(written.log)))
            case "written":
                if writer.holds_newest_lease:
                    yield self._put(world, index, writer._replace(step="checked"))
                else:
                    yield self._put(world, index, start_over)
            case "checked":
                yield self._create(world, index, writer, row, len(world.snaps), "created")
            case "created":
                yield self._put(_end(world, writer.epoch), index, Writer(done=writer.done + 1))
            case _:
                return

    def _put_in_order(self, world: World, index: int, writer: Writer) -> World:
        newest = len(world.snaps)
        if newest and "end-before-begin" in self.rules:
            world = _end(world, world.snaps[-1].epoch)
        missing, covers_from = _find_missing(world) if "repair" in self.rules else ((), 0)
        if missing:
            mine = writer._replace(step="repairing", missing=missing, covers_from=covers_from, base=newest)
        else:
            mine = writer._replace(step="ordered", base=newest)
        return self._put(world, index, mine)

    def _create(self, world: World, index: int, writer: Writer, row: Row | None, covers_from: int, then: str) -> World:
        if "between" in self.rules and len(world.snaps) != writer.base:
            return self._put(world, index, Writer(done=writer.done))
        snap = Snap(row, writer.epoch, writer.position, covers_from)
        created = world._replace(snaps=(*world.snaps, snap))
        return self._put(created, index, writer._replace(step=then, base=len(created.snaps)))


def _one_more_opener(world: World, rules: frozenset[str]) -> World:
    model = Model(rules, rows_each=1)
    opener = Writer(step="opened", holds_newest_lease=True)
    world = world._replace(writers=(opener,), crashes_left=0, timeouts_left=0)
    while world.writers[0].step != "ordered":
        (world,) = model.next_worlds(world)
    return world


def _complaint(world: World, rows: int) -> str | None:
    of_snapshots = [snap.row for snap in world.snaps if snap.row is not None]
    if len(of_snapshots) != rows or len(set(of_snapshots)) != rows:
        return f"snapshots hold {of_snapshots}"
    of_log = [entry.row for entry in world.log if entry.status == "committed"]
    if of_log != of_snapshots:
        return f"the log holds {of_log}, the snapshots {of_snapshots}"
    for snapshot_id, snap in enumerate(world.snaps, start=1):
        seen = [s.row for s in world.snaps[:snapshot_id] if s.row is not None]
        seen += [
            entry.row
            for place, entry in enumerate(world.log)
            if place >= snap.position and entry.status == "committed" and not 0 < entry.repairs <= snapshot_id
        ]
        if seen != of_snapshots:
            return f"a reader that starts at snapshot {snapshot_id} sees {seen}, not {of_snapshots}"
    return None


def _is_within_bounds(world: World) -> bool:
    """Endless takeovers without progress add no new states."""
    return world.epoch <= 6 and len(world.log) <= 4


def _explore(rules: frozenset[str], rows_each: int = 1, crashes: int = 1, timeouts: int = 1) -> tuple[int, str | None]:
    model = Model(rules, rows_each)
    first = World(crashes_left=crashes, timeouts_left=timeouts)
    seen, todo = {first}, [first]
    while todo:
        world = todo.pop()
        if all(w.step == "idle" and w.done == rows_each for w in world.writers):
            complaint = _complaint(_one_more_opener(world, rules), 2 * rows_each)
            if complaint is not None:
                return len(seen), complaint
        for following in model.next_worlds(world):
            if _is_within_bounds(following) and following not in seen:
                seen.add(following)
                todo.append(following)
    return len(seen), None


def test_no_interleaving_of_two_writers_loses_repeats_or_reorders_a_row() -> None:
    states, complaint = _explore(RULES)

    assert complaint is None
    assert states > 5_000, "the model has become too small to mean anything"


@pytest.mark.parametrize("rule", sorted(RULES))
def test_without_any_one_rule_the_model_finds_a_counterexample(rule: str) -> None:
    _, complaint = _explore(RULES - {rule})

    assert complaint is not None
