"""Tests that need a controllable clock: expired transactions and records."""

from __future__ import annotations

import pytest

from storage_lib.errors import LeaseLostError, LogOffsetsExpiredError
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import EndOutcome
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from tests.support.fake_environment import FakeClock
from tests.support.log_changes import changes, log_schema, log_texts, read_log

SCHEMA = log_schema()


def new_log(name: str, clock: FakeClock, *, retention_ms: int | None = None) -> MemoryLogStore:
    log = MemoryLogStore(
        SCHEMA, name, f"uuid of {name}", clock, retention_ms=retention_ms, transaction_timeout_ms=60_000
    )
    log.create()
    return log


def test_a_transaction_past_its_time_is_aborted_and_its_commit_fenced() -> None:
    clock = FakeClock()
    log = new_log("timed out", clock)
    transaction = log.begin(0)
    clock.pass_time(3_600)  # nothing is written yet, so no time-out runs
    transaction.write(0, *changes(SCHEMA, "+I 1 a"))
    (written,) = transaction.flush()
    clock.pass_time(61)

    assert log.latest_offsets().of(0) == 2
    with pytest.raises(LeaseLostError):
        transaction.write(0, *changes(SCHEMA, "+I 2 b"))
    assert log.end(transaction.handle, commit=True) is EndOutcome.FENCED
    assert not log.is_committed(written)
    assert log_texts(log) == []


def test_retention_forgets_old_records() -> None:
    clock = FakeClock()
    log = new_log("retention", clock, retention_ms=86_400_000)
    for number in range(3):
        transaction = log.begin(0)
        transaction.write(0, *changes(SCHEMA, f"+I {number} a"))
        log.end(transaction.handle, commit=True)
        clock.pass_time(40_000)

    assert [change.row[0] for change in read_log(log)] == [1, 2]
    with pytest.raises(LogOffsetsExpiredError, match="oldest: 1"):
        list(log.read(LogOffsets()))


def test_offsets_at_finds_the_record_by_its_time() -> None:
    clock = FakeClock()
    log = new_log("by time", clock)
    times = []
    for number in range(3):
        times.append(clock.now_millis())
        transaction = log.begin(0)
        transaction.write(0, *changes(SCHEMA, f"+I {number} a"))
        log.end(transaction.handle, commit=True)
        clock.pass_time(10)

    assert [log.offsets_at(time).of(0) for time in times] == [0, 2, 4]
    assert [log.offsets_at(time + 1).of(0) for time in times] == [2, 4, 6]


def test_stores_of_one_name_share_one_log() -> None:
    clock = FakeClock()
    one, two = new_log("shared", clock), new_log("shared", clock)
    transaction = one.begin(0)
    transaction.write(0, *changes(SCHEMA, "+I 1 a"))

    assert two.end(transaction.handle, commit=True) is EndOutcome.ENDED
    assert log_texts(two) == ["+I 1 a"]
