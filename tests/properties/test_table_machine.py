"""Random operations on a table, in any order, with crashes anywhere; the model is a dictionary."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from typing import TypeAlias

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage_lib import DynamicTable, NotFoundError, StreamPosition
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from tests.support.every_file import data_files, needed_by_snapshots
from tests.support.fake_environment import FakeClock
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import applied, content, orders, rows, streamed

Content: TypeAlias = dict[str, str]
"""Price by key, both as text: ``{"a 1": "10"}``."""

_TRANSACTION_TIMEOUT_SECONDS = 1000
_CRASH_AT_MAX = 60

_partition = st.sampled_from("ab")
_id = st.integers(0, 4).map(str)
_price = st.integers(0, 9).map(str)
_kind = st.sampled_from(["+I", "+U", "-D"])
_change = st.tuples(_kind, _partition, _id, _price).map(" ".join)
_changes = st.lists(_change, min_size=1, max_size=6)
_insert = st.tuples(st.just("+I"), _partition, _id, _price).map(" ".join)
_inserts = st.lists(_insert, max_size=5)
_scope = st.sampled_from([None, {}, {"dt": "a"}, {"dt": "b"}])
_crash_at = st.none() | st.none() | st.integers(1, _CRASH_AT_MAX)


def _apply(state: Content, changes: list[str]) -> None:
    for change in changes:
        kind, dt, id_, price = change.split()
        if kind == "-D":
            state.pop(f"{dt} {id_}", None)
        else:
            state[f"{dt} {id_}"] = price


def _texts(state: Content) -> set[str]:
    return {f"{key} {price}" for key, price in state.items()}


def _difference(old: Content, new: Content) -> list[str]:
    gone = [f"-D {key} {price}" for key, price in old.items() if key not in new]
    return gone + [f"+U {key} {price}" for key, price in new.items() if old.get(key) != price]


class TableMachine(RuleBasedStateMachine):
    """Runs every operation in a new process; ``crash_at`` is the I/O at which it crashes, or None."""

    @initialize(buckets=st.sampled_from(["1", "2"]), place=st.sampled_from([{}, {"file.root-path": "/outside"}]))
    def create(self, buckets: str, place: dict[str, str]) -> None:
        self.table = orders(None, **{"bucket": buckets, "manifest.merge-min-count": "3", **place})
        self.state: Content = {}
        self.content_at: dict[int, Content] = {}
        """Content of each snapshot."""
        self.reader_from: dict[int, Content] = {}
        """Rows of a reader that began at this snapshot: without later untracked changes."""
        self.tags: dict[str, Content] = {}
        """Content of each tag."""
        self.identifiers = itertools.count(1)
        self.log_may_be_behind = False

    @rule(changes=_changes, tracked=st.sampled_from([True, True, False]), crash_at=_crash_at)
    def append(self, changes: list[str], tracked: bool, crash_at: int | None) -> None:  # noqa: FBT001
        new = dict(self.state)
        _apply(new, changes)
        self.act(
            lambda table, identity: table.append(rows(*changes), change_tracking=tracked, **identity),  # type: ignore[arg-type]
            new,
            changes if tracked else [],
            crash_at,
            takes_lease=True,
        )

    @rule(inserts=_inserts, scope=_scope, tracked=st.booleans(), crash_at=_crash_at)
    def overwrite(
        self,
        inserts: list[str],
        scope: dict[str, object] | None,
        tracked: bool,  # noqa: FBT001
        crash_at: int | None,
    ) -> None:
        if scope:
            inserts = [insert for insert in inserts if insert.split()[1] == scope["dt"]]
        replaced = {insert.split()[1] for insert in inserts} if scope is None else set(scope.values()) or {"a", "b"}
        new = {key: price for key, price in self.state.items() if key[0] not in replaced}
        _apply(new, inserts)
        self.act(
            lambda table, identity: table.overwrite(
                rows(*inserts),
                partition=scope,
                change_tracking=tracked,
                **identity,  # type: ignore[arg-type]
            ),
            new,
            _difference(self.state, new) if tracked else [],
            crash_at,
            takes_lease=tracked,
        )

    @rule(partition=_partition, tracked=st.booleans(), crash_at=_crash_at)
    def drop_partition(self, partition: str, tracked: bool, crash_at: int | None) -> None:  # noqa: FBT001
        new = {key: price for key, price in self.state.items() if key[0] != partition}

        def drop(table: DynamicTable, identity: dict[str, object]) -> Snapshot | None:
            try:
                return table.maintenance.drop_partitions([{"dt": partition}], change_tracking=tracked, **identity)  # type: ignore[arg-type]
            except NotFoundError:
                assert new == self.state
                return None

        self.act(drop, new, _difference(self.state, new) if tracked else [], crash_at, takes_lease=False)

    @rule(full=st.booleans(), crash_at=_crash_at)
    def compact(self, full: bool, crash_at: int | None) -> None:  # noqa: FBT001
        self.act(
            lambda table, identity: table.compact(full=full, **identity),  # type: ignore[arg-type]
            self.state,
            [],
            crash_at,
            takes_lease=False,
        )

    @rule(retain_last=st.integers(1, 3), crash_at=_crash_at)
    def expire(self, retain_last: int, crash_at: int | None) -> None:
        with suppress(SimulatedCrash):
            self.process(crash_at).maintenance.expire_snapshots(retain_last=retain_last)

    @rule(crash_at=_crash_at, which=st.integers(0, 20))
    def tag(self, crash_at: int | None, which: int) -> None:
        retained = self.retained()
        if not retained:
            return
        snapshot_id, name = retained[which % len(retained)], f"tag-{next(self.identifiers)}"
        with suppress(SimulatedCrash):
            self.process(crash_at).tags.create(name, snapshot_id)
        if name in [tag.name for tag in self.table.tags.list()]:
            self.tags[name] = dict(self.content_at[snapshot_id])

    @precondition(lambda self: self.tags)
    @rule(crash_at=_crash_at, which=st.integers(0, 20))
    def delete_tag(self, crash_at: int | None, which: int) -> None:
        name = sorted(self.tags)[which % len(self.tags)]
        with suppress(SimulatedCrash):
            self.process(crash_at).tags.delete(name)
        if name not in [tag.name for tag in self.table.tags.list()]:
            del self.tags[name]

    @rule(tracked=st.booleans(), crash_at=_crash_at, which=st.integers(0, 20), to_tag=st.booleans())
    def rollback(self, tracked: bool, crash_at: int | None, which: int, to_tag: bool) -> None:  # noqa: FBT001
        retained = self.retained()
        if to_tag and self.tags:
            tag = sorted(self.tags)[which % len(self.tags)]
            new = dict(self.tags[tag])
            target: dict[str, object] = {"tag": tag}
        elif retained:
            snapshot_id = retained[which % len(retained)]
            new = dict(self.content_at[snapshot_id])
            target = {"snapshot_id": snapshot_id}
        else:
            return
        self.act(
            lambda table, identity: table.rollback_to(**target, change_tracking=tracked, **identity),  # type: ignore[arg-type]
            new,
            _difference(self.state, new) if tracked else [],
            crash_at,
            takes_lease=tracked,
        )

    @rule(changes=_changes, tracked=st.booleans(), crash_at=_crash_at, deletes=st.booleans())
    def publish_a_branch(
        self,
        changes: list[str],
        tracked: bool,  # noqa: FBT001
        crash_at: int | None,
        deletes: bool,  # noqa: FBT001
    ) -> None:
        new, name = dict(self.state), f"branch-{next(self.identifiers)}"
        _apply(new, changes)

        def publish(table: DynamicTable, identity: dict[str, object]) -> Snapshot | None:
            if name not in table.branches.list():
                table.branches.create(name)
            table.branches.open(name).append(rows(*changes), commit_user="author", commit_identifier=1)
            return table.branches.fast_forward(name, change_tracking=tracked, **identity)  # type: ignore[arg-type]

        self.act(publish, new, _difference(self.state, new) if tracked else [], crash_at, takes_lease=tracked)
        if deletes and name in self.table.branches.list():
            with suppress(SimulatedCrash):
                self.process(crash_at).branches.delete(name)

    @rule(crash_at=_crash_at)
    def remove_orphan_files(self, crash_at: int | None) -> None:
        with suppress(SimulatedCrash):
            self.process(crash_at).maintenance.remove_orphan_files(older_than=timedelta(0))

    @precondition(lambda self: self.log_may_be_behind)
    @rule()
    def broker_aborts_what_is_open(self) -> None:
        clock = self.table.environment.clock
        assert isinstance(clock, FakeClock)
        clock.pass_time(_TRANSACTION_TIMEOUT_SECONDS)

    @rule()
    def another_writer_takes_the_lease(self) -> None:
        table = self.process(None)
        table.new_write().abort(table.new_write().begin(commit_user="passer-by"), [])
        self.note_snapshots(self.state, [], None)
        self.log_may_be_behind = False

    def process(self, crash_at: int | None) -> DynamicTable:
        """Open the table in a new process, which crashes at its ``crash_at``-th I/O."""
        faults = () if crash_at is None else (Fault(FaultKind.CRASH_BEFORE, at=crash_at),)
        storage = FaultyFileIO(self.table.environment.file_io, *faults)
        return reopened_in(storage, self.table, names=f"process-{next(self.identifiers)}")

    def act(
        self,
        commit: Callable[[DynamicTable, dict[str, object]], Snapshot | None],
        new: Content,
        changes: list[str],
        crash_at: int | None,
        *,
        takes_lease: bool,
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
            assert made is not None or new == self.state
        if made is None and has_died:
            self.note_snapshots(self.state, [], None)
        else:
            self.note_snapshots(new, changes, made)
        if has_died:
            self.log_may_be_behind = True
        elif takes_lease:
            self.log_may_be_behind = False
        if made is not None:
            # Another process repeats the commit, whether the first one crashed or not.
            assert commit(self.process(None), identity) == made
            self.note_snapshots(self.state, [], None)
            if takes_lease:
                self.log_may_be_behind = False

    def note_snapshots(self, new: Content, changes: list[str], made: Snapshot | None) -> None:
        """Record that ``new`` was committed as ``made``; snapshots next to it may only repair the log."""
        for reader in self.reader_from.values():
            _apply(reader, changes)
        newest = self.process(None).context.file_store.snapshots.latest_id() or 0
        for snapshot_id in range(max(self.content_at, default=0) + 1, newest + 1):
            is_before = made is not None and snapshot_id < made.id
            self.content_at[snapshot_id] = dict(self.state if is_before else new)
            self.reader_from[snapshot_id] = dict(self.content_at[snapshot_id])
            if is_before:
                _apply(self.reader_from[snapshot_id], changes)
        self.state = dict(new)

    @invariant()
    def a_batch_read_is_the_model(self) -> None:
        assert content(self.table) == _texts(self.state)

    @invariant()
    def every_snapshot_still_holds_what_it_held(self) -> None:
        for snapshot_id in self.retained():
            rows_then = self.table.to_arrow(snapshot_id=snapshot_id).to_pylist()
            texts = {f"{row['dt']} {row['id']} {row['price']}" for row in rows_then}
            assert len(texts) == len(rows_then)
            assert texts == _texts(self.content_at[snapshot_id]), f"snapshot {snapshot_id}"

    @invariant()
    def every_tag_still_holds_what_it_held(self) -> None:
        for name, kept in self.tags.items():
            rows_then = self.process(None).to_arrow(tag=name).to_pylist()
            assert {f"{row['dt']} {row['id']} {row['price']}" for row in rows_then} == _texts(kept), name

    @invariant()
    def every_branch_can_be_read(self) -> None:
        table = self.process(None)
        for name in table.branches.list():
            table.branches.open(name).to_arrow()

    @invariant()
    def every_snapshot_and_the_log_after_it_are_all_tracked_changes(self) -> None:
        if self.log_may_be_behind:
            return
        for snapshot_id in self.retained():
            changes = streamed(self.process(None), StreamPosition(snapshot_id=snapshot_id, split_index=0))
            assert applied(changes) == _texts(self.reader_from[snapshot_id]), f"from snapshot {snapshot_id}"

    @invariant()
    def files_above_level_0_do_not_overlap(self) -> None:
        store = self.table.context.file_store
        key_of = KeyValueSchema(schema=self.table.schema).comparable_key
        runs: dict[tuple[bytes, int, int], list[tuple[object, object]]] = {}
        for entry in store.scan.entries(store.snapshots.latest()):
            if entry.file.level:
                place = (entry.partition, entry.bucket, entry.file.level)
                runs.setdefault(place, []).append((key_of(entry.file.min_key), key_of(entry.file.max_key)))
        for run in runs.values():
            for (_, last), (first, _) in pairwise(sorted(run, key=lambda bounds: bounds[0])):  # type: ignore[arg-type, return-value]
                assert last < first  # type: ignore[operator]

    @invariant()
    def offsets_never_go_back(self) -> None:
        parts = [
            SnapshotLogProperties.of_snapshot(self.table.context.file_store.snapshots.load(n)) for n in self.retained()
        ]
        offsets = [part.offsets.next_offsets for part in parts if part is not None and part.offsets is not None]
        assert len(offsets) == len(parts)
        for before, after in pairwise(offsets):
            assert all(after.get(bucket, 0) >= offset for bucket, offset in before.items())

    def retained(self) -> range:
        history = self.process(None).context.file_store.snapshots
        earliest = history.earliest_id()
        return range(0) if earliest is None else range(earliest, (history.latest_id() or 0) + 1)

    def nothing_unneeded_is_left(self) -> None:
        table = self.process(None)
        table.maintenance.expire_snapshots(retain_last=1)
        table.maintenance.remove_orphan_files(older_than=timedelta(0))
        stores = [
            table.context.file_store,
            *(table.branches.open(name).context.file_store for name in table.branches.list()),
        ]
        assert data_files(table) == needed_by_snapshots(*stores)

    def teardown(self) -> None:
        if hasattr(self, "table"):
            self.another_writer_takes_the_lease()
            self.nothing_unneeded_is_left()
            self.every_snapshot_and_the_log_after_it_are_all_tracked_changes()


TableMachine.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=14,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestTableMachine = TableMachine.TestCase
