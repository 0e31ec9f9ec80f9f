"""Random operations on a table without a primary key, with crashes anywhere; the model counts rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage_lib import DynamicTable, MemoryCatalog, NotFoundError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import COLUMNS, NAME, rows

_CRASH_AT_MAX = 40
_row = st.tuples(st.sampled_from("ab"), st.integers(0, 2).map(str), st.integers(0, 1).map(str)).map(" ".join)
_inserts = st.lists(_row.map("+I {}".format), max_size=5)
_changes = st.lists(st.tuples(st.sampled_from(["+I", "+U", "-U", "-D"]), _row).map(" ".join), max_size=6)
_scope = st.sampled_from([None, {}, {"dt": "a"}, {"dt": "b"}])
_crash_at = st.none() | st.none() | st.integers(1, _CRASH_AT_MAX)


def row_of(change: str) -> str:
    """Return the row of a change: ``"a 1 10"`` of ``"+I a 1 10"``."""
    return change.split(" ", 1)[1]


class MultisetMachine(RuleBasedStateMachine):
    """Runs every operation in a new process; ``crash_at`` is the I/O at which it crashes, or None."""

    options: ClassVar[dict[str, str]] = {"write-mode": "append-only"}
    takes_changes: ClassVar[bool] = False

    @initialize(buckets=st.sampled_from([{}, {"bucket": "2", "bucket-key": "id"}]))
    def create(self, buckets: dict[str, str]) -> None:
        options = {"manifest.merge-min-count": "3", "log.system": "none", **self.options, **buckets}
        catalog = MemoryCatalog(environment=fake_environment())
        self.table = catalog.create_table(NAME, COLUMNS, partition_by=["dt"], options=options)
        self.state: Counter[str] = Counter()
        self.content_at: dict[int, Counter[str]] = {}
        self.identifiers = itertools.count(1)

    @rule(changes=_inserts, crash_at=_crash_at)
    def insert(self, changes: list[str], crash_at: int | None) -> None:
        new = Counter(self.state)
        new.update(map(row_of, changes))
        self.act(lambda table, identity: table.append(rows(*changes), **identity), new, crash_at)  # type: ignore[arg-type]

    @rule(changes=_changes, crash_at=_crash_at)
    def change(self, changes: list[str], crash_at: int | None) -> None:
        if not self.takes_changes:
            return
        new = Counter(self.state)
        for change in changes:
            new[row_of(change)] += -1 if change[0] == "-" else 1
        self.act(lambda table, identity: table.append(rows(*changes), **identity), new, crash_at)  # type: ignore[arg-type]

    @rule(inserts=_inserts, scope=_scope, crash_at=_crash_at)
    def overwrite(self, inserts: list[str], scope: dict[str, object] | None, crash_at: int | None) -> None:
        if scope:
            inserts = [insert for insert in inserts if row_of(insert)[0] == scope["dt"]]
        replaced = {row_of(insert)[0] for insert in inserts} if scope is None else set(scope.values()) or {"a", "b"}
        new = Counter({row: count for row, count in self.state.items() if row[0] not in replaced})
        new.update(map(row_of, inserts))
        self.act(
            lambda table, identity: table.overwrite(
                rows(*inserts),
                partition=scope,
                change_tracking=False,
                **identity,  # type: ignore[arg-type]
            ),
            new,
            crash_at,
        )

    @rule(partition=st.sampled_from("ab"), crash_at=_crash_at)
    def drop_partition(self, partition: str, crash_at: int | None) -> None:
        new = Counter({row: count for row, count in self.state.items() if row[0] != partition})

        def drop(table: DynamicTable, identity: dict[str, object]) -> Snapshot | None:
            try:
                return table.maintenance.drop_partitions([{"dt": partition}], **identity)  # type: ignore[arg-type]
            except NotFoundError:
                assert +new == +self.state
                return None

        self.act(drop, new, crash_at)

    @rule(back=st.integers(0, 5), crash_at=_crash_at)
    def roll_back(self, back: int, crash_at: int | None) -> None:
        retained = self.retained(self.process(None))
        if not retained:
            return
        target = retained[max(0, len(retained) - 1 - back)]
        self.act(
            lambda table, identity: table.rollback_to(snapshot_id=target, **identity),  # type: ignore[arg-type]
            Counter(self.content_at[target]),
            crash_at,
        )

    @rule(full=st.booleans(), crash_at=_crash_at)
    def compact(self, full: bool, crash_at: int | None) -> None:  # noqa: FBT001
        self.act(lambda table, identity: table.compact(full=full, **identity), self.state, crash_at)  # type: ignore[arg-type]

    @rule(retain_last=st.integers(1, 3), crash_at=_crash_at)
    def expire(self, retain_last: int, crash_at: int | None) -> None:
        with suppress(SimulatedCrash):
            self.process(crash_at).maintenance.expire_snapshots(retain_last=retain_last)

    def process(self, crash_at: int | None) -> DynamicTable:
        """Open the table in a new process, which crashes at its ``crash_at``-th I/O."""
        faults = () if crash_at is None else (Fault(FaultKind.CRASH_BEFORE, at=crash_at),)
        storage = FaultyFileIO(self.table.environment.file_io, *faults)
        return reopened_in(storage, self.table, names=f"process-{next(self.identifiers)}")

    def act(
        self,
        commit: Callable[[DynamicTable, dict[str, object]], Snapshot | None],
        new: Counter[str],
        crash_at: int | None,
    ) -> None:
        identifier = next(self.identifiers)
        identity: dict[str, object] = {"commit_user": f"user-{identifier}", "commit_identifier": identifier}
        has_died = False
        try:
            returned = commit(self.process(crash_at), identity)
        except SimulatedCrash:
            returned, has_died = None, True
        made = self.process(None).context.file_store.snapshots.find_commit(f"user-{identifier}", identifier)
        if not has_died:
            assert returned == made
            assert made is not None or +new == +self.state
        if made is not None:
            # Another process repeats the commit, whether the first one crashed or not.
            assert commit(self.process(None), identity) == made
            self.state = Counter(new)
        newest = self.process(None).context.file_store.snapshots.latest_id() or 0
        for snapshot_id in range(max(self.content_at, default=0) + 1, newest + 1):
            self.content_at[snapshot_id] = Counter(self.state)

    @invariant()
    def every_snapshot_still_holds_what_it_held(self) -> None:
        table = self.process(None)
        for snapshot_id in self.retained(table):
            read = table.to_arrow(snapshot_id=snapshot_id).to_pylist()
            counted = Counter(" ".join(str(value) for value in row.values()) for row in read)
            assert counted == +self.content_at[snapshot_id], f"snapshot {snapshot_id}"

    @invariant()
    def a_stream_from_the_start_is_the_table(self) -> None:
        batch = self.process(None).stream().poll()
        read = [] if batch is None else batch.select(COLUMNS.names).to_pylist()
        assert Counter(" ".join(str(value) for value in row.values()) for row in read) == +self.state

    def retained(self, table: DynamicTable) -> range:
        history = table.context.file_store.snapshots
        earliest = history.earliest_id()
        return range(0) if earliest is None else range(earliest, (history.latest_id() or 0) + 1)


_SETTINGS = settings(
    max_examples=15,
    stateful_step_count=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class CountedMachine(MultisetMachine):
    """Rows are removed as well, also before they are added: their count is negative until then."""

    options: ClassVar[dict[str, str]] = {}
    takes_changes: ClassVar[bool] = True


MultisetMachine.TestCase.settings = _SETTINGS
CountedMachine.TestCase.settings = _SETTINGS
TestAppendOnlyMachine = MultisetMachine.TestCase
TestCountedMachine = CountedMachine.TestCase
