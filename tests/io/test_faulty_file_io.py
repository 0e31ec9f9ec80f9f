"""The faults on which other tests rely occur as documented."""

from __future__ import annotations

import pytest

from storage_lib.errors import CommitOutcomeUnknownError, UnavailableError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.faulty_file_io import DELAYED_BY, WRITES, Fault, FaultKind, FaultyFileIO, SimulatedCrash


def test_a_failure_strikes_once_and_does_nothing() -> None:
    files = MemoryFileIO()
    faulty = FaultyFileIO(files, Fault(FaultKind.FAIL, at=2))
    faulty.write_bytes("/t/a", b"a")

    with pytest.raises(UnavailableError, match="/t/b"):
        faulty.write_bytes("/t/b", b"b")

    assert not files.exists("/t/b")
    faulty.write_bytes("/t/b", b"b")
    assert [operation for operation, _ in faulty.calls] == ["write_bytes"] * 3


def test_a_lost_answer_to_a_create_is_an_unknown_outcome_of_something_done() -> None:
    files = MemoryFileIO()
    faulty = FaultyFileIO(files, Fault(FaultKind.LOSE_ANSWER, operation="create_if_absent", path="snapshot-2"))
    assert faulty.create_if_absent("/t/snapshot-1", b"1")

    with pytest.raises(CommitOutcomeUnknownError):
        faulty.create_if_absent("/t/snapshot-2", b"2")

    assert files.read_bytes("/t/snapshot-2") == b"2"
    assert not faulty.create_if_absent("/t/snapshot-2", b"again")


def test_a_503_may_be_the_answer_to_something_done() -> None:
    files = MemoryFileIO()
    faulty = FaultyFileIO(files, Fault(FaultKind.ANSWER_503))

    with pytest.raises(UnavailableError):
        faulty.create_if_absent("/t/snapshot-1", b"1")

    assert files.read_bytes("/t/snapshot-1") == b"1"


def test_a_delayed_create_is_done_after_others_and_may_then_come_too_late() -> None:
    files = MemoryFileIO()
    faulty = FaultyFileIO(files, Fault(FaultKind.DELAY, operation="create_if_absent"))

    with pytest.raises(CommitOutcomeUnknownError):
        faulty.create_if_absent("/t/snapshot-1", b"late")

    for _ in range(DELAYED_BY):
        assert not faulty.exists("/t/snapshot-1")
    assert faulty.exists("/t/snapshot-1")

    overtaken = FaultyFileIO(files, Fault(FaultKind.DELAY, operation="create_if_absent"))
    with pytest.raises(CommitOutcomeUnknownError):
        overtaken.create_if_absent("/t/snapshot-2", b"late")
    assert overtaken.create_if_absent("/t/snapshot-2", b"in time")
    overtaken.arrive()
    assert files.read_bytes("/t/snapshot-2") == b"in time"


@pytest.mark.parametrize(("kind", "is_done"), [(FaultKind.CRASH_BEFORE, False), (FaultKind.CRASH_AFTER, True)])
def test_the_dead_do_nothing_more_whoever_catches(kind: FaultKind, is_done: bool) -> None:  # noqa: FBT001
    files = MemoryFileIO()
    faulty = FaultyFileIO(files, Fault(kind, operation=WRITES))
    assert not faulty.exists("/t/a")

    with pytest.raises(SimulatedCrash):
        faulty.write_bytes("/t/a", b"a")

    assert files.exists("/t/a") is is_done
    for act in (lambda: faulty.delete("/t/a"), lambda: faulty.read_bytes("/t/a"), lambda: faulty.exists("/t/a")):
        with pytest.raises(SimulatedCrash):
            act()
    assert files.exists("/t/a") is is_done


def test_a_torn_write_leaves_half_but_a_create_is_never_torn() -> None:
    files = MemoryFileIO()

    with pytest.raises(SimulatedCrash):
        FaultyFileIO(files, Fault(FaultKind.TEAR)).write_bytes("/t/manifest-1", b"0123456789")
    with pytest.raises(SimulatedCrash):
        FaultyFileIO(files, Fault(FaultKind.TEAR)).create_if_absent("/t/snapshot-1", b"0123456789")

    assert files.read_bytes("/t/manifest-1") == b"01234"
    assert not files.exists("/t/snapshot-1")


def test_no_handler_of_errors_survives_a_crash() -> None:
    assert not issubclass(SimulatedCrash, Exception)
