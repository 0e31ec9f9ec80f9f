from __future__ import annotations

import pytest

from storage_lib.errors import CommitOutcomeUnknownError, CorruptFileError, NotFoundError, StorageError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.io.table_directory.numbered_files import DisplacedError, NumberedFiles
from tests.support.fake_environment import FakeClock
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash

DIRECTORY = "/table/snapshot"


def numbered(files: MemoryFileIO | FaultyFileIO, *, hints: bool = True) -> NumberedFiles:
    return NumberedFiles(files, DIRECTORY, "snapshot-", hints=hints)


def filled(count: int, *, hints: bool = True) -> MemoryFileIO:
    files = MemoryFileIO()
    sequence = numbered(files, hints=hints)
    for number in range(1, count + 1):
        assert sequence.create(number, str(number).encode())
    return files


@pytest.mark.parametrize("hints", [True, False])
def test_a_new_sequence_is_empty(hints: bool) -> None:  # noqa: FBT001
    sequence = numbered(MemoryFileIO(), hints=hints)

    assert sequence.latest_id() is None
    assert sequence.earliest_id() is None
    assert sequence.ids() == []
    with pytest.raises(NotFoundError):
        sequence.load(1)


@pytest.mark.parametrize("hints", [True, False])
def test_the_next_number_is_created_once(hints: bool) -> None:  # noqa: FBT001
    files = filled(3, hints=hints)
    late = numbered(files, hints=hints)

    assert not late.create(3, b"late")

    assert late.load(3) == b"3"
    assert (late.earliest_id(), late.latest_id(), late.ids()) == (1, 3, [1, 2, 3])


def test_hints_are_plain_decimal_text_as_other_engines_read_them() -> None:
    files = filled(12)

    assert files.read_bytes(f"{DIRECTORY}/LATEST") == b"12"
    assert files.read_bytes(f"{DIRECTORY}/EARLIEST") == b"1"


def test_without_hints_no_other_file_appears() -> None:
    files = filled(2, hints=False)

    assert {entry.name for entry in files.list_directory(DIRECTORY)} == {"snapshot-1", "snapshot-2"}


@pytest.mark.parametrize("hint", [b"3", b"5", b"1", b"7\n", b"99", b"", b"rubbish", b"-1", b"\xff\xfe", "٣".encode()])
@pytest.mark.parametrize("name", ["LATEST", "EARLIEST"])
def test_a_stale_wrong_or_torn_hint_changes_no_answer(hint: bytes, name: str) -> None:
    files = filled(7)
    files.delete(f"{DIRECTORY}/snapshot-1")
    files.delete(f"{DIRECTORY}/snapshot-2")
    files.replace(f"{DIRECTORY}/EARLIEST", b"3")
    # EARLIEST may be ahead of the files, and a LATEST above all files refers to a lost file (tested below).
    if hint not in ((b"99",) if name == "LATEST" else (b"5", b"7\n")):
        files.replace(f"{DIRECTORY}/{name}", hint)

    assert numbered(files).latest_id() == 7
    assert numbered(files).earliest_id() == 3


def test_a_latest_above_all_that_is_there_is_an_error_that_names_both() -> None:
    files = filled(7)
    files.replace(f"{DIRECTORY}/LATEST", b"99")

    with pytest.raises(CorruptFileError, match=r"snapshot-99 is missing, although .*LATEST names it; .*snapshot-7"):
        numbered(files).latest_id()


def test_missing_hints_change_no_answer() -> None:
    files = filled(7)
    files.delete(f"{DIRECTORY}/LATEST")
    files.delete(f"{DIRECTORY}/EARLIEST")

    assert (numbered(files).earliest_id(), numbered(files).latest_id()) == (1, 7)


def test_a_hint_far_behind_costs_one_listing_not_a_thousand_looks() -> None:
    files = filled(1000)
    files.replace(f"{DIRECTORY}/LATEST", b"1")
    counted = FaultyFileIO(files)

    assert numbered(counted).latest_id() == 1000

    assert len(counted.calls) < 20
    assert ("list_directory", DIRECTORY) in counted.calls


def test_the_latest_of_a_busy_sequence_costs_two_looks() -> None:
    counted = FaultyFileIO(filled(1000))
    sequence = numbered(counted)
    sequence.latest_id()
    counted.calls.clear()

    assert sequence.latest_id() == 1000

    assert [operation for operation, _ in counted.calls] == ["exists", "exists"]


def test_one_reader_sees_what_another_created_after_its_first_look() -> None:
    files = filled(2)
    reader, writer = numbered(files), numbered(files)
    assert reader.latest_id() == 2

    writer.create(3, b"3")

    assert reader.latest_id() == 3


def test_a_remembered_latest_that_expired_meanwhile_is_not_believed() -> None:
    files = filled(2)
    reader, writer = numbered(files), numbered(files)
    reader.latest_id()
    for number in range(3, 30):
        writer.create(number, b"x")
    for number in range(1, 20):
        files.delete(f"{DIRECTORY}/snapshot-{number}")

    assert reader.latest_id() == 29


def test_what_is_given_up_is_below_the_earliest_before_it_is_deleted() -> None:
    files = filled(5)
    sequence = numbered(files)

    sequence.write_earliest(4)

    assert sequence.earliest_id() == 4
    assert sequence.ids() == [1, 2, 3, 4, 5]


def test_only_the_exact_spelling_is_a_number() -> None:
    files = filled(1)
    for name in (
        ".snapshot-2.0a1b.tmp",
        "snapshot-2.tmp",
        "snapshot-",
        "snapshot--2",
        "snapshot-02",
        "snapshot-+2",
        "snapshot-1_0",
        "snapshot-²",
        "snapshot-٣",
        "other-9",
    ):
        files.write_bytes(f"{DIRECTORY}/{name}", b"x")

    assert numbered(files).ids() == [1]
    assert numbered(files).number_of("snapshot-0") == 0


def test_an_outage_at_the_hint_does_not_undo_a_commit() -> None:
    files = filled(1)
    faulty = FaultyFileIO(files, Fault(FaultKind.FAIL, operation="replace"))

    assert numbered(faulty).create(2, b"2")

    assert files.read_bytes(f"{DIRECTORY}/LATEST") == b"1"
    assert numbered(files).latest_id() == 2


def test_the_loser_of_a_race_writes_no_hint() -> None:
    files = filled(2)
    loser = FaultyFileIO(files)

    assert not numbered(loser).create(1, b"late")

    assert [operation for operation, _ in loser.calls] == ["create_if_absent"]


def create_two(files: FaultyFileIO) -> None:
    sequence = numbered(files)
    assert sequence.create(1, b"1")
    assert sequence.create(2, b"2")


def test_whatever_io_dies_latest_never_says_more_than_there_is() -> None:
    counted = FaultyFileIO(MemoryFileIO())
    create_two(counted)
    deaths = 0
    for kind in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER):
        for at in range(1, len(counted.calls) + 1):
            files = MemoryFileIO()
            with pytest.raises(SimulatedCrash):
                create_two(FaultyFileIO(files, Fault(kind, at=at)))
            deaths += 1

            latest = numbered(files).latest_id()
            assert latest == max(numbered(files).ids(), default=None)
            if files.exists(f"{DIRECTORY}/LATEST"):
                assert int(files.read_bytes(f"{DIRECTORY}/LATEST")) <= (latest or 0)
            assert numbered(files).create((latest or 0) + 1, b"next")
    assert deaths == 2 * len(counted.calls)


def expired(files: MemoryFileIO, below: int, *, deleted: int) -> None:
    """Let an expiry run: all numbers below ``below`` are out of use, and those below ``deleted`` are gone."""
    numbered(files).write_earliest(below)
    for number in range(1, deleted):
        files.delete(f"{DIRECTORY}/snapshot-{number}", below=DIRECTORY)


def test_a_file_that_takes_the_place_of_a_deleted_one_is_not_created() -> None:
    files = filled(6)
    late = numbered(files)
    expired(files, 6, deleted=6)

    assert not late.create(2, b"late")

    assert files.read_bytes(f"{DIRECTORY}/LATEST") == b"6"
    assert (late.earliest_id(), late.latest_id(), late.ids()) == (6, 6, [6])
    assert late.create(7, b"7")


def test_whether_the_last_deleted_file_was_created_before_is_said_to_be_unknown() -> None:
    files = filled(6)
    expired(files, 6, deleted=6)

    with pytest.raises(CommitOutcomeUnknownError, match="suspended"):
        numbered(files).create(5, b"late")

    assert files.read_bytes(f"{DIRECTORY}/LATEST") == b"6"
    assert numbered(files).latest_id() == 6


def test_a_file_that_expired_before_its_creator_looked_is_said_to_be_unknown() -> None:
    files = filled(1)

    class Suspended(FaultyFileIO):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            created = super().create_if_absent(path, data)
            others = numbered(files)
            for number in (3, 4):
                assert others.create(number, b"theirs")
            expired(files, 4, deleted=4)
            return created

    with pytest.raises(CommitOutcomeUnknownError, match="suspended"):
        numbered(Suspended(files)).create(2, b"ours")


def test_a_hint_of_a_file_that_is_not_there_does_not_prevent_a_commit() -> None:
    files = filled(2)
    numbered(files).write_earliest(9)

    assert numbered(files).create(3, b"3")


def test_the_file_of_another_process_that_was_suspended_as_well_is_not_deleted() -> None:
    files = filled(1)

    class Suspended(FaultyFileIO):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            created = super().create_if_absent(path, data)
            others = numbered(files)
            for number in (3, 4):
                assert others.create(number, b"theirs")
            expired(files, 4, deleted=4)
            files.create_if_absent(path, b"of another one that slept")
            return created

    with pytest.raises(CommitOutcomeUnknownError, match="suspended"):
        numbered(Suspended(files)).create(2, b"ours")

    assert files.read_bytes(f"{DIRECTORY}/snapshot-2") == b"of another one that slept"


@pytest.mark.parametrize("error", [StorageError("403"), PermissionError("403")])
def test_a_hint_that_can_not_be_read_leaves_the_outcome_unknown(error: Exception) -> None:
    class Refusing(FaultyFileIO):
        def read_bytes(self, path: str) -> bytes:
            if path.endswith("EARLIEST"):
                raise error
            return super().read_bytes(path)

    files = filled(1)

    with pytest.raises(CommitOutcomeUnknownError, match="403"):
        numbered(Refusing(files)).create(2, b"2")

    assert files.read_bytes(f"{DIRECTORY}/snapshot-2") == b"2"


def follows_two(content: bytes) -> bool:
    return content == b"2"


def test_a_file_that_does_not_follow_the_one_before_is_deleted() -> None:
    files = filled(2)
    others = numbered(files)

    class Suspended(FaultyFileIO):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            files.replace(f"{DIRECTORY}/snapshot-2", b"of another history")
            return super().create_if_absent(path, data)

    with pytest.raises(DisplacedError, match="replaced the file before it"):
        numbered(Suspended(files)).create(3, b"3", follows=follows_two)

    assert others.latest_id() == 2
    assert files.read_bytes(f"{DIRECTORY}/LATEST") == b"2"


@pytest.mark.parametrize("kept", [0, 1])
def test_a_file_above_a_gap_is_deleted(kept: int) -> None:
    files = filled(kept)

    with pytest.raises(DisplacedError):
        numbered(files).create(3, b"3", follows=follows_two, is_gone=lambda: not kept)

    assert numbered(files).ids() == list(range(1, kept + 1))
    assert numbered(files).latest_id() == (kept or None)


def test_a_file_whose_predecessor_has_just_expired_stays() -> None:
    class Expiring(FaultyFileIO):
        def read_bytes(self, path: str) -> bytes:
            if path.endswith("snapshot-2"):
                expired(files, 3, deleted=3)
            return super().read_bytes(path)

    files = filled(2)

    assert numbered(Expiring(files)).create(3, b"3", follows=follows_two)
    assert numbered(files).latest_id() == 3


def test_earliest_does_not_move_back() -> None:
    files = filled(9)
    expired(files, 7, deleted=7)
    numbered(files).move_earliest(3)
    assert numbered(files).earliest_id() == 7

    class Suspended(FaultyFileIO):
        def replace(self, path: str, data: bytes) -> None:
            expired(files, 9, deleted=9)
            super().replace(path, data)

    numbered(Suspended(files)).move_earliest(8)

    assert files.read_bytes(f"{DIRECTORY}/EARLIEST") == b"9"


def test_a_file_below_a_gap_is_not_the_earliest() -> None:
    files = filled(9)
    expired(files, 7, deleted=7)
    files.create_if_absent(f"{DIRECTORY}/snapshot-2", b"of a writer that slept")
    files.replace(f"{DIRECTORY}/EARLIEST", b"3")

    assert numbered(files).earliest_id() == 7
    files.delete(f"{DIRECTORY}/snapshot-2")
    with pytest.raises(DisplacedError):
        numbered(files).create(3, b"3", follows=follows_two)
    assert numbered(files).ids() == [7, 8, 9]


def test_an_expired_file_that_is_there_again_is_not_the_newest_for_long() -> None:
    files, clock = filled(2), FakeClock()
    reader = NumberedFiles(files, DIRECTORY, "snapshot-", hints=True, clock=clock)
    assert reader.latest_id() == 2
    for number in range(3, 6):
        numbered(files).create(number, b"")
    expired(files, 5, deleted=5)
    files.create_if_absent(f"{DIRECTORY}/snapshot-2", b"of a writer that slept")

    clock.pass_time(11)

    assert reader.latest_id() == 5
