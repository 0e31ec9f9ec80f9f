"""Optimistic commit: exactly once, atomic, never lost, and no files left behind by failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    LeaseLostError,
    UnavailableError,
)
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.format.avro_container import encode_container
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.types.row_kind import RowKind
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO
from tests.support.stored_table import StoredTable, committable_of, orders_schema

INDEX_SCHEMA = '{"type": "record", "name": "index", "fields": [{"name": "_INDEX_TYPE", "type": "string"}]}'

A1, A2, B1 = ("a", 1, "x"), ("a", 2, "y"), ("b", 1, "z")


def test_a_commit_shows_all_its_rows_in_the_next_snapshot(table: StoredTable) -> None:
    first = table.append([A1, B1])
    second = table.append([A2, ("a", 1, "newer")])
    assert (first.id, second.id) == (1, 2)
    assert table.rows(first) == [A1, B1]
    assert table.rows(second) == [("a", 1, "newer"), A2, B1]
    assert (second.total_record_count, second.delta_record_count) == (4, 2)
    assert second.commit_kind is CommitKind.APPEND


def test_a_deleted_row_is_gone(table: StoredTable) -> None:
    table.append([A1, A2])
    table.append([A1], [RowKind.DELETE])
    assert table.rows() == [A2]


def test_another_process_sees_the_same(table: StoredTable) -> None:
    table.append([A1])
    table.append([A2])
    assert table.rows(store=table.reopened()) == [A1, A2]


def test_the_same_identity_commits_once(table: StoredTable) -> None:
    first = table.append([A1], user="stream", identifier=7)
    table.append([A2])
    again = table.append([("a", 1, "replayed")], user="stream", identifier=7)
    assert again == first
    assert table.rows() == [A1, A2]
    assert table.store.snapshots.latest_id() == 2


def test_the_same_identity_commits_once_in_another_process_too(table: StoredTable) -> None:
    first = table.append([A1], user="stream", identifier=7)
    table.append([A2])
    messages = table.messages([("a", 1, "replayed")])
    again = table.reopened().commit.commit(committable_of(messages, user="stream", identifier=7))
    assert again == first


def test_other_users_and_other_identifiers_are_other_commits(table: StoredTable) -> None:
    for user, identifier in (("stream", 7), ("stream", 8), ("other", 7)):
        table.append([A1], user=user, identifier=identifier)
    assert table.store.snapshots.latest_id() == 3


def test_batch_commits_without_an_identifier_are_never_taken_for_each_other(table: StoredTable) -> None:
    table.append([A1], user="batch")
    table.append([A2], user="batch")
    assert table.rows() == [A1, A2]


def test_an_empty_commit_carries_only_properties(table: StoredTable) -> None:
    table.append([A1])
    snapshot = table.commit([], properties={"offsets": "5"})
    assert (snapshot.id, snapshot.delta_record_count, snapshot.total_record_count) == (2, 0, 1)
    assert snapshot.properties == {"offsets": "5"}
    assert table.rows() == [A1]


def test_properties_are_made_from_the_snapshot_before(table: StoredTable) -> None:
    def count(previous: Snapshot | None) -> dict[str, str]:
        return {"count": str(1 if previous is None else 1 + int(previous.properties["count"]))}

    for row in (A1, A2):
        table.commit(table.messages([row]), properties_of=count, properties={"own": row[2]})
    latest = table.store.snapshots.latest()
    assert latest is not None
    assert latest.properties == {"count": "2", "own": "y"}


def test_a_watermark_never_falls(table: StoredTable) -> None:
    commit = table.store.commit.commit
    assert commit(committable_of([], watermark=50)).watermark == 50
    assert commit(committable_of([], watermark=40)).watermark == 50
    assert commit(committable_of([])).watermark == 50
    assert commit(committable_of([], watermark=60)).watermark == 60


def test_what_other_engines_put_into_a_snapshot_is_carried_forward(table: StoredTable) -> None:
    first = table.append([A1])
    index = encode_container(INDEX_SCHEMA, [{"_INDEX_TYPE": "HASH"}])
    table.environment.file_io.write_bytes(table.paths.manifest_path("index-manifest-x"), index)
    theirs = replace(first, id=2, index_manifest="index-manifest-x", statistics="stat-x", next_row_id=0, uuid="theirs")
    assert table.store.snapshots.append_if_absent(theirs)
    ours = table.append([A2])
    assert (ours.id, ours.index_manifest, ours.statistics, ours.next_row_id) == (3, "index-manifest-x", "stat-x", 0)


def test_snapshots_are_ordered_in_time_even_if_clocks_are_not(table: StoredTable) -> None:
    first = table.append([A1])
    slow = StoredTable(table.schema, fake_environment(table.environment.file_io, names="slow"))
    slow.environment.clock.pass_time(0)  # type: ignore[attr-defined]  # its clock restarts, behind
    assert slow.append([A2]).time_millis >= first.time_millis


def test_new_rows_and_a_compaction_become_two_snapshots(table: StoredTable) -> None:
    table.append([A1])
    table.append([("a", 1, "newer")])
    (compaction,) = table.compaction_messages()
    rows = table.messages([B1])
    snapshot = table.commit([*rows, compaction], user="u", identifier=3, properties={"own": "1"})
    latest = table.store.snapshots.latest()
    assert latest is not None
    assert (snapshot.id, snapshot.commit_kind, snapshot.properties) == (3, CommitKind.APPEND, {"own": "1"})
    assert (latest.id, latest.commit_kind, latest.properties) == (4, CommitKind.COMPACT, {})
    assert (latest.commit_user, latest.commit_identifier) == ("u", 3)
    assert table.rows() == [("a", 1, "newer"), B1]
    assert table.store.snapshots.find_commit("u", 3) == snapshot


def test_an_append_follows_a_compaction_that_came_between(table: StoredTable) -> None:
    table.append([A1])
    table.append([A2])
    messages = table.messages([("a", 1, "newer")])
    table.compact()
    table.commit(messages)
    assert table.rows() == [("a", 1, "newer"), A2]


def test_a_compaction_that_lost_to_another_leaves_nothing_behind(table: StoredTable) -> None:
    table.append([A1])
    table.append([("a", 1, "newer")])
    late = table.compaction_messages()
    table.compact()
    before = table.names_on_storage("manifest"), table.files()
    with pytest.raises(CommitConflictError, match=r"table db\.t: compact on top of snapshot 3.*no longer live"):
        table.commit(late, user="late")
    assert (table.names_on_storage("manifest"), table.files()) == before
    table.store.abort(late)
    assert table.rows() == [("a", 1, "newer")]
    assert len(data_files(table)) == 3


def test_a_compaction_that_lost_to_an_overwrite_conflicts(table: StoredTable) -> None:
    table.append([A1])
    table.append([("a", 1, "newer")])
    late = table.compaction_messages()
    table.overwrite([A2])
    with pytest.raises(CommitConflictError):
        table.commit(late)
    assert table.rows() == [A2]


def test_a_late_compaction_is_dropped_with_its_files_but_the_rows_it_came_with_stay(table: StoredTable) -> None:
    table.append([A1])
    table.append([("a", 1, "newer")])
    late = table.compaction_messages()
    rows = table.messages([B1])
    table.compact()
    count = len(data_files(table))
    snapshot = table.commit([*rows, *late], user="u", identifier=1)
    assert snapshot.commit_kind is CommitKind.APPEND
    assert table.store.snapshots.latest_id() == snapshot.id
    assert table.rows() == [("a", 1, "newer"), B1]
    assert len(data_files(table)) == count - 1


def test_messages_that_were_committed_under_another_identity_are_refused(table: StoredTable) -> None:
    messages = table.messages([A1])
    table.commit(messages, user="one", identifier=1)
    with pytest.raises(InvalidInputError, match="part of the table already"):
        table.commit(messages, user="two", identifier=1)


def test_an_append_for_another_number_of_buckets_is_refused(table: StoredTable) -> None:
    table.append([A1, A2, ("a", 3, "w")])
    rescaled = StoredTable(orders_schema({"bucket": "3"}), table.environment)
    with pytest.raises(CommitConflictError, match="written for 3 buckets, but the partition now has 2"):
        rescaled.append([A1])
    rescaled.append([B1])
    rescaled.overwrite([A2], partition_filter=col("dt") == "a")
    rescaled.append([A1])
    assert rescaled.rows() == [A1, A2, B1]


class TestOverwrite:
    def test_an_overwrite_replaces_the_partitions_it_names(self, table: StoredTable) -> None:
        table.append([A1, A2, B1])
        snapshot = table.overwrite([("a", 9, "only")], partition_filter=col("dt") == "a")
        assert snapshot.commit_kind is CommitKind.OVERWRITE
        assert table.rows() == [("a", 9, "only"), B1]

    def test_partitions_may_be_named_by_their_bytes(self, table: StoredTable) -> None:
        table.append([A1, B1])
        (message,) = table.messages([("b", 5, "new")], overwrite=True)
        committable = committable_of([message])
        table.store.commit.overwrite(committable, partitions={message.partition})
        assert table.rows() == [A1, ("b", 5, "new")]

    def test_without_names_everything_is_replaced(self, table: StoredTable) -> None:
        table.append([A1, B1])
        table.overwrite([A2])
        assert table.rows() == [A2]

    def test_without_rows_partitions_are_dropped(self, table: StoredTable) -> None:
        table.append([A1, A2, B1])
        table.overwrite([], partition_filter=col("dt").isin(["a", "nowhere"]))
        assert table.rows() == [B1]
        latest = table.store.snapshots.latest()
        assert latest is not None
        assert latest.total_record_count == 1

    def test_whatever_is_committed_afterwards_wins(self, table: StoredTable) -> None:
        table.append([A1])
        stream = table.messages([("a", 1, "from the stream")])
        table.overwrite([("a", 1, "reprocessed")])
        table.commit(stream)
        assert table.rows() == [("a", 1, "from the stream")]

    def test_rows_committed_between_writing_and_committing_are_replaced_too(self, table: StoredTable) -> None:
        table.append([A1])
        messages = table.messages([("a", 9, "only")], overwrite=True)
        table.append([A2])
        table.compact()
        table.store.commit.overwrite(committable_of(messages))
        assert table.rows() == [("a", 9, "only")]

    def test_rows_outside_of_the_named_partitions_are_refused(self, table: StoredTable) -> None:
        table.append([A1, B1])
        with pytest.raises(InvalidInputError, match="partition dt=b are outside"):
            table.overwrite([("b", 1, "stray")], partition_filter=col("dt") == "a")
        assert table.rows() == [A1, B1]

    def test_an_overwrite_commits_once_under_its_identity(self, table: StoredTable) -> None:
        first = table.overwrite([A1], identifier=4)
        table.append([A2])
        assert table.overwrite([B1], identifier=4) == first
        assert table.rows() == [A1, A2]


class TestGuard:
    def test_it_is_asked_about_each_snapshot_that_the_commit_is_about_to_follow(self, table: StoredTable) -> None:
        asked: list[int | None] = []
        intruders = iter([table.messages([A2])])

        def guard(latest: Snapshot | None) -> None:
            asked.append(None if latest is None else latest.id)
            for messages in intruders:
                table.commit(messages, user="intruder")

        snapshot = table.commit(table.messages([A1]), guard=guard)
        assert asked == [None, 1]
        assert snapshot.id == 2
        assert table.rows() == [A1, A2]

    def test_what_it_raises_stops_the_commit_and_nothing_is_left(self, table: StoredTable) -> None:
        table.append([A1])
        before = table.names_on_storage("manifest")

        def guard(_: Snapshot | None) -> None:
            raise LeaseLostError("the lease is over")

        with pytest.raises(LeaseLostError):
            table.commit(table.messages([A2]), guard=guard)
        assert table.names_on_storage("manifest") == before
        assert table.store.snapshots.latest_id() == 1


class TestRaces:
    def test_losing_a_race_costs_one_base_list_and_leaves_no_trace(self, table: StoredTable) -> None:
        table.append([A1])
        intruders = iter([table.messages([("c", n, "w")]) for n in range(3)])

        def guard(_: Snapshot | None) -> None:
            for messages in intruders:
                table.commit(messages, user="intruder")
                return

        table.commit(table.messages([A2]), guard=guard)
        assert table.store.snapshots.latest_id() == 5
        assert len(table.rows()) == 5
        assert set(table.names_on_storage("manifest")) == referenced_metadata(table)

    def test_who_loses_every_race_gives_up_and_leaves_nothing(self, table: StoredTable) -> None:
        def guard(_: Snapshot | None) -> None:
            table.commit([], user="intruder")

        with pytest.raises(UnavailableError, match="lost against other writers"):
            table.commit(table.messages([A1]), guard=guard)
        assert set(table.names_on_storage("manifest")) == referenced_metadata(table)

    def test_a_replay_that_slips_in_before_the_create_is_found(self, table: StoredTable) -> None:
        """Two processes replay one commit at the same time: the loser of the race returns the winner's snapshot."""
        other = StoredTable(table.schema, fake_environment(table.environment.file_io, names="zombie"))
        replays = iter([other.messages([A1])])

        def guard(_: Snapshot | None) -> None:
            for messages in replays:
                other.commit(messages, user="stream", identifier=3)

        snapshot = table.commit(table.messages([A1]), user="stream", identifier=3, guard=guard)
        assert snapshot.id == 1
        assert table.store.snapshots.latest_id() == 1
        assert table.rows() == [A1]


def faulty(*faults: Fault) -> tuple[StoredTable, StoredTable]:
    """Return a table on faulty storage, and the same table on sound storage."""
    files = MemoryFileIO()
    sound = StoredTable(orders_schema(), fake_environment(files, names="sound"))
    sound.append([A1])
    return StoredTable(orders_schema(), fake_environment(FaultyFileIO(files, *faults))), sound


class TestLostAnswers:
    def test_a_create_whose_answer_is_lost_has_happened(self) -> None:
        table, sound = faulty(Fault(FaultKind.LOSE_ANSWER, operation="create_if_absent", path="/snapshot-2"))
        assert table.append([A2]).id == 2
        assert sound.rows() == [A1, A2]
        assert sound.store.snapshots.latest_id() == 2

    def test_a_create_that_failed_with_its_answer_is_tried_again(self) -> None:
        class Swallowing(FaultyFileIO):
            def create_if_absent(self, path: str, data: bytes) -> bool:
                if path.endswith("/snapshot-2") and not self.calls_of(path):
                    self.calls.append(("create_if_absent", path))
                    raise CommitOutcomeUnknownError("simulated: the request never arrived")
                return super().create_if_absent(path, data)

            def calls_of(self, path: str) -> int:
                return sum(call == ("create_if_absent", path) for call in self.calls)

        files = MemoryFileIO()
        StoredTable(orders_schema(), fake_environment(files, names="sound")).append([A1])
        table = StoredTable(orders_schema(), fake_environment(Swallowing(files)))
        assert table.append([A2]).id == 2
        assert table.rows() == [A1, A2]

    def test_a_put_that_lost_against_itself_has_happened(self) -> None:
        """The store's client retries a put whose response was lost, and receives the error that the name exists."""

        class Repeating(FaultyFileIO):
            def create_if_absent(self, path: str, data: bytes) -> bool:
                created = super().create_if_absent(path, data)
                return created and "/snapshot-" not in path

        files = MemoryFileIO()
        StoredTable(orders_schema(), fake_environment(files, names="sound")).append([A1])
        table = StoredTable(orders_schema(), fake_environment(Repeating(files)))
        assert table.append([A2]).id == 2
        assert table.store.snapshots.latest_id() == 2
        assert table.rows() == [A1, A2]

    def test_if_the_look_up_fails_too_the_outcome_is_unknown_and_everything_stays(self) -> None:
        lost = Fault(FaultKind.LOSE_ANSWER, operation="create_if_absent", path="/snapshot-2")
        down = [Fault(FaultKind.FAIL, at=n, operation="read_bytes", path="/snapshot-2") for n in range(1, 20)]
        table, sound = faulty(lost, *down)
        messages = table.messages([A2])
        with pytest.raises(CommitOutcomeUnknownError, match="Repeat the commit under the same identity"):
            table.commit(messages, user="u", identifier=1)
        assert sound.rows() == [A1, A2]
        again = sound.commit(messages, user="u", identifier=1)
        assert again.id == 2
        assert sound.rows() == [A1, A2]

    def test_an_outage_at_the_create_is_no_commit_and_leaves_nothing(self) -> None:
        down = [Fault(FaultKind.FAIL, at=n, operation="create_if_absent", path="/snapshot-2") for n in range(1, 20)]
        table, sound = faulty(*down)
        with pytest.raises(UnavailableError):
            table.append([A2])
        assert set(sound.names_on_storage("manifest")) == referenced_metadata(sound)
        assert sound.store.snapshots.latest_id() == 1


class TestAbort:
    def test_it_deletes_the_files_of_a_commit_that_failed(self, table: StoredTable) -> None:
        table.append([A1])
        count = len(data_files(table))
        table.store.abort(table.messages([A2]))
        assert len(data_files(table)) == count

    def test_it_never_deletes_what_is_live(self, table: StoredTable) -> None:
        messages = table.messages([A1])
        table.commit(messages)
        table.store.abort(messages)
        assert table.rows() == [A1]

    def test_it_spares_what_the_commit_became_even_if_that_was_compacted_since(self, table: StoredTable) -> None:
        table.append([("a", 1, "older")])
        messages = table.messages([A1])
        snapshot = table.commit(messages, user="u", identifier=1)
        table.compact()
        table.store.abort(messages, committed=snapshot)
        assert table.rows(snapshot) == [A1]


def test_a_commit_reads_no_more_when_history_is_long() -> None:
    """W5: the last commit as fast as the first. Counted in I/O, since wall-clock time is unreliable."""
    counted = FaultyFileIO(MemoryFileIO())
    table = StoredTable(orders_schema(), fake_environment(counted))

    def calls_of_commit(n: int) -> int:
        before = len(counted.calls)
        table.append([("a", n, "x")], user="stream", identifier=n)
        return len(counted.calls) - before

    per_commit = [calls_of_commit(n) for n in range(80)]
    assert max(per_commit[40:]) <= max(per_commit[:10]) + 3
    assert len(table.rows()) == 80
    assert len(newest_manifests(table)) <= 31


def test_in_another_process_the_first_commit_does_not_read_a_manifest_twice() -> None:
    files = MemoryFileIO()
    writer = StoredTable(orders_schema(), fake_environment(files, names="writer"))
    for n in range(35):
        writer.append([("a", n, "x")])
    counted = FaultyFileIO(files)
    other = StoredTable(orders_schema(), fake_environment(counted, names="other"))
    other.append([B1])
    read = [path for operation, path in counted.calls if operation == "read_bytes" and "/manifest/" in path]
    assert len(read) == len(set(read)) <= 40


def data_files(table: StoredTable) -> list[str]:
    files = table.environment.file_io
    return [
        each.name
        for partition in files.list_directory(table.root)
        if partition.name.startswith("dt=")
        for bucket in files.list_directory(f"{table.root}/{partition.name}")
        for each in files.list_directory(f"{table.root}/{partition.name}/{bucket.name}")
    ]


def newest_manifests(table: StoredTable) -> list[str]:
    """Return the manifests that a reader of the newest snapshot opens."""
    latest = table.store.snapshots.latest()
    assert latest is not None
    lists = (latest.base_manifest_list, latest.delta_manifest_list)
    return [manifest.file_name for name in lists for manifest in table.store._manifests.read_list(name)]


def referenced_metadata(table: StoredTable) -> set[str]:
    """Return the manifests and lists that any snapshot refers to."""
    store = table.reopened()
    latest = store.snapshots.latest_id() or 0
    names: set[str] = set()
    for snapshot_id in range(store.snapshots.earliest_id() or 1, latest + 1):
        snapshot = store.snapshots.load(snapshot_id)
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            names |= {name, *(manifest.file_name for manifest in store._manifests.read_list(name))}
    return names
