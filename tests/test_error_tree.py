"""Errors form a tree whose branches determine the caller's reaction; the diagram in ``errors.py`` shows that tree."""

from __future__ import annotations

import pickle
import re
import traceback
import warnings
from pathlib import Path

import pytest

import storage_lib
from storage_lib import errors
from storage_lib.errors import PermanentError, RetryableError, StorageError, UnavailableError, note_outcome
from storage_lib.io.after_commit import after_commit, warn_after_commit
from storage_lib.spark.types.spark_errors import storage_error_in
from storage_lib.table.protocol.outcome import reports_outcome

CLASSES = [getattr(errors, name) for name in errors.__all__]
LEAVES = [each for each in CLASSES if each not in (StorageError, RetryableError, PermanentError)]
RETRYABLE = {"CommitConflictError", "LeaseLostError", "UnavailableError", "CommitOutcomeUnknownError"}


def test_every_error_is_in_the_list_and_public() -> None:
    defined = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    assert defined == set(errors.__all__)
    assert defined <= set(storage_lib.__all__)


@pytest.mark.parametrize("error", LEAVES)
def test_every_error_says_whether_to_run_the_same_call_again(error: type[StorageError]) -> None:
    expected = RetryableError if error.__name__ in RETRYABLE else PermanentError
    assert error.__bases__ == (expected,)
    assert expected.__bases__ == (StorageError,)


def test_the_drawing_is_the_tree() -> None:
    drawn = re.findall(r"^( *[│├└── ]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    depths = sorted({len(indent) for indent, _ in drawn})
    branch = ""
    tree: dict[str, str] = {}
    for indent, name in drawn:
        depth = depths.index(len(indent))
        if depth == 1:
            branch = name
        tree[name] = "Exception" if depth == 0 else "StorageError" if depth == 1 else branch
    assert tree == {each.__name__: each.__bases__[0].__name__ for each in CLASSES}


@pytest.mark.parametrize("error", CLASSES)
def test_an_error_survives_the_way_from_a_worker(error: type[StorageError]) -> None:
    raised = error("table shop.orders: column 'price' is text; cast it to DOUBLE")
    received = pickle.loads(pickle.dumps(raised))  # noqa: S301  our own bytes
    assert type(received) is error
    assert str(received) == str(raised)


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_tells_its_meaning(error: type[StorageError]) -> None:
    assert error.__name__.endswith("Error")
    assert error.__doc__


@pytest.mark.parametrize("committed", [True, False, None])
def test_what_became_of_a_commit_survives_the_way_from_a_worker_and_from_spark(committed: bool | None) -> None:  # noqa: FBT001
    raised = UnavailableError("can't write /t/x: No space left on device")
    note_outcome(raised, committed=committed)
    note_outcome(raised, committed=not committed)

    received = pickle.loads(pickle.dumps(raised))  # noqa: S301  our own bytes
    told = storage_error_in("".join(traceback.format_exception(raised)))

    assert vars(received)["committed"] is committed
    assert type(told) is UnavailableError
    assert str(told) == str(raised)
    assert vars(told)["committed"] is committed


def test_an_error_of_reading_tells_no_outcome() -> None:
    told = storage_error_in("".join(traceback.format_exception(UnavailableError("x"))))

    assert told is not None
    assert "committed" not in vars(told)
    assert told.committed is None


def test_an_error_from_below_and_an_interrupt_tell_their_outcome_too() -> None:
    @reports_outcome
    def verb(error: BaseException) -> None:
        raise error

    with pytest.raises(ZeroDivisionError) as raised:
        verb(ZeroDivisionError())
    with pytest.raises(KeyboardInterrupt) as interrupted:
        verb(KeyboardInterrupt())

    assert vars(raised.value)["committed"] is False
    assert vars(interrupted.value)["committed"] is None


def test_nothing_behind_the_commit_point_raises_and_an_interrupt_there_tells_that_it_happened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with after_commit("table t: tidying"):
        Path("/nowhere/at/all").read_bytes()
    assert "table t: tidying failed: FileNotFoundError" in caplog.text

    with pytest.raises(KeyboardInterrupt) as interrupted, after_commit("table t: tidying"):
        raise KeyboardInterrupt
    assert vars(interrupted.value)["committed"] is True


def test_a_warning_behind_the_commit_point_is_no_error_where_warnings_are(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_after_commit("table t: the compaction failed")
    assert "the compaction failed" in caplog.text
