"""The sequence of snapshots, and the lookup of a commit's snapshot."""

from __future__ import annotations

import pytest

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.io.table_directory.table_paths import TablePaths
from tests.support.faulty_file_io import FaultyFileIO

PATHS = TablePaths("/t")


def snapshot(
    number: int, user: str = "u", identifier: int = BATCH_COMMIT_IDENTIFIER, kind: CommitKind = CommitKind.APPEND
) -> Snapshot:
    return Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="base",
        delta_manifest_list="delta",
        commit_user=user,
        commit_identifier=identifier,
        commit_kind=kind,
        time_millis=0,
        total_record_count=0,
        delta_record_count=0,
    )


@pytest.fixture
def files() -> FaultyFileIO:
    return FaultyFileIO(MemoryFileIO())


@pytest.fixture
def history(files: FaultyFileIO) -> SnapshotHistory:
    """Create snapshots 1..200 of the stream ``s``, identifiers 0..199, with a compaction after every tenth."""
    history = SnapshotHistory(files, PATHS)
    for number in range(1, 201):
        kind = CommitKind.COMPACT if number % 10 == 0 else CommitKind.APPEND
        user = "compaction" if kind is CommitKind.COMPACT else "s"
        assert history.append_if_absent(snapshot(number, user, number, kind))
    return history


def reads(files: FaultyFileIO) -> int:
    return sum(operation == "read_bytes" and "/snapshot-" in path for operation, path in files.calls)


def test_an_empty_history_has_no_ends(files: FaultyFileIO) -> None:
    history = SnapshotHistory(files, PATHS)
    assert (history.latest_id(), history.earliest_id(), history.latest()) == (None, None, None)
    assert history.find_commit("u", 1) is None


def test_a_taken_id_is_not_given_twice(history: SnapshotHistory) -> None:
    assert not history.append_if_absent(snapshot(200, "late"))
    assert history.load(200).commit_user == "compaction"


def test_a_snapshot_that_is_not_there_yet_is_not_found(history: SnapshotHistory) -> None:
    with pytest.raises(NotFoundError, match=r"no snapshot 201.*newest is 200"):
        history.load(201)


def test_a_snapshot_from_before_the_first_never_was(history: SnapshotHistory) -> None:
    for number in (0, -1):
        with pytest.raises(NotFoundError, match=f"there is no snapshot {number} .* begin at 1"):
            history.load(number)


def test_expired_snapshots_are_told_from_missing_ones(files: FaultyFileIO, history: SnapshotHistory) -> None:
    assert history.expire_below(5, frozenset()) == [1, 2, 3, 4]
    for each in (history, SnapshotHistory(files, PATHS)):
        with pytest.raises(SnapshotExpiredError, match="earliest kept is 5"):
            each.load(4)
    loaded = history.load_expired(4)
    assert loaded is not None
    assert loaded.id == 4
    history.delete_expired(4)
    assert history.load_expired(4) is None


def test_the_snapshots_before_one_end_where_an_expiry_has_come_meanwhile(
    files: FaultyFileIO, history: SnapshotHistory
) -> None:
    other = SnapshotHistory(files, PATHS)
    back = other.up_to(other.latest())
    assert [next(back).id for _ in range(3)] == [200, 199, 198]
    history.expire_below(190, frozenset())
    for number in range(1, 190):
        history.delete_expired(number)
    assert [each.id for each in back] == list(range(197, 189, -1))
    assert [each.id for each in other.up_to(other.latest())] == list(range(200, 189, -1))
    assert not list(other.up_to(None))


def test_snapshots_are_read_once(files: FaultyFileIO, history: SnapshotHistory) -> None:
    other = SnapshotHistory(files, PATHS)
    before = reads(files)
    for _ in range(3):
        assert [each.id for each in other.load_all(range(100, 121))] == list(range(100, 121))
    assert reads(files) - before == 21


class TestFindCommit:
    @pytest.mark.parametrize("number", [1, 63, 64, 65, 137, 199])
    def test_every_commit_is_found(self, files: FaultyFileIO, history: SnapshotHistory, number: int) -> None:
        found = SnapshotHistory(files, PATHS).find_commit("s", number)
        assert found is not None
        assert found.id == number

    def test_other_identities_are_not(self, history: SnapshotHistory) -> None:
        assert history.find_commit("s", 500) is None
        assert history.find_commit("t", 5) is None
        assert history.find_commit("s", 10) is None

    def test_history_is_read_once_however_often_one_looks(self, files: FaultyFileIO, history: SnapshotHistory) -> None:
        other = SnapshotHistory(files, PATHS)
        before = reads(files)
        for identifier in range(1000, 1020):
            assert other.find_commit("s", identifier) is None
        assert reads(files) - before == 200

    def test_what_was_committed_since_is_seen(self, files: FaultyFileIO, history: SnapshotHistory) -> None:
        other = SnapshotHistory(files, PATHS)
        assert other.find_commit("s", 201) is None
        history.append_if_absent(snapshot(201, "s", 201))
        found = other.find_commit("s", 201)
        assert found is not None
        assert found.id == 201

    def test_of_a_stream_only_the_newest_snapshots_are_read(
        self, files: FaultyFileIO, history: SnapshotHistory
    ) -> None:
        other = SnapshotHistory(files, PATHS)
        before = reads(files)
        assert other.find_commit("s", 200, ascending=True) is None
        assert reads(files) - before <= 64

    def test_of_an_append_and_its_compaction_the_append_is_found(
        self, files: FaultyFileIO, history: SnapshotHistory
    ) -> None:
        history.append_if_absent(snapshot(201, "both", 1, CommitKind.APPEND))
        history.append_if_absent(snapshot(202, "other"))
        history.append_if_absent(snapshot(203, "both", 1, CommitKind.COMPACT))
        for each in (history, SnapshotHistory(files, PATHS)):
            found = each.find_commit("both", 1)
            assert found is not None
            assert found.id == 201

    def test_a_compaction_of_its_own_is_found(self, history: SnapshotHistory) -> None:
        found = history.find_commit("compaction", 70)
        assert found is not None
        assert found.id == 70

    def test_expired_history_is_not_looked_for(self, files: FaultyFileIO, history: SnapshotHistory) -> None:
        for number in history.expire_below(150, frozenset()):
            history.delete_expired(number)
        other = SnapshotHistory(files, PATHS)
        assert other.find_commit("s", 77) is None
        assert other.find_commit("s", 177) is not None

    def test_a_commit_whose_snapshot_expired_is_not_made_again(self, history: SnapshotHistory) -> None:
        assert history.find_commit("s", 7) is not None
        for number in history.expire_below(150, frozenset()):
            history.delete_expired(number)
        found = history.find_commit("s", 7)
        assert found is not None
        assert (found.id, found.has_files) == (7, False)
