"""Leases: one holder at a time, taken over when they expire, fair; errors name the current holder."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage_lib import LeaseLostError, UnavailableError
from storage_lib.io.table_paths import TablePaths
from storage_lib.table.protocol.turn import TurnLease
from tests.support.fake_environment import FakeClock, fake_environment


class _SteppingClock(FakeClock):
    """Does something at every sleep: what others do while a waiter waits."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.meanwhile()


def _lease(clock: FakeClock, *, wait_timeout_ms: int = 600_000) -> TurnLease:
    return TurnLease(
        fake_environment(clock=clock),
        TablePaths("table"),
        timeout_ms=30_000,
        wait_timeout_ms=wait_timeout_ms,
        table="shop.orders",
    )


def test_turns_are_numbered_and_free_when_given_back() -> None:
    lease = _lease(FakeClock())

    first = lease.acquire(holder="a", commit_user="a", purpose="write")
    assert lease.holder() == "a"
    lease.release(first)
    assert lease.holder() is None
    second = lease.acquire(holder="b", commit_user="b", purpose="write")

    assert (first.number, second.number) == (1, 2)
    assert not second.taken_over


def test_a_waiter_gets_the_turn_as_soon_as_it_is_given_back() -> None:
    clock = _SteppingClock()
    lease = _lease(clock)
    first = lease.acquire(holder="a", commit_user="a", purpose="write")
    clock.meanwhile = lambda: lease.release(first)

    second = lease.acquire(holder="b", commit_user="b", purpose="write")

    assert not second.taken_over
    assert clock.monotonic() < 1


def test_a_holder_that_beats_keeps_its_turn_however_long_it_works() -> None:
    clock = _SteppingClock()
    lease = _lease(clock, wait_timeout_ms=120_000)
    first = lease.acquire(holder="slow one", commit_user="a", purpose="nightly load")
    clock.meanwhile = lambda: lease.beat(first)

    with pytest.raises(UnavailableError, match=r"slow one has held turn 1 for 'nightly load'"):
        lease.acquire(holder="b", commit_user="b", purpose="write")

    lease.check(first)


def test_a_holder_without_a_sign_of_life_is_taken_over_and_finds_out() -> None:
    clock = FakeClock()
    lease = _lease(clock)
    first = lease.acquire(holder="dead", commit_user="a", purpose="write")

    second = lease.acquire(holder="b", commit_user="b", purpose="write")

    assert second.taken_over
    assert 30 <= clock.monotonic() < 31
    lease.check(second)
    with pytest.raises(LeaseLostError, match="taken over"):
        lease.check(first)


def test_a_restarted_writer_takes_its_own_turn_over_at_once() -> None:
    clock = FakeClock()
    lease = _lease(clock)
    lease.acquire(holder="query, first run", commit_user="query", purpose="write")

    turn = lease.acquire(holder="query, second run", commit_user="query", purpose="write")

    assert turn.taken_over
    assert clock.monotonic() == 0


def test_a_writer_that_gives_its_turn_back_lets_a_waiter_pass_before_it_asks_again() -> None:
    clock = _SteppingClock()
    lease = _lease(clock)
    turn = lease.acquire(holder="stream", commit_user="stream", purpose="write")
    ticket = TablePaths("table").waiting_path("batch")
    files = lease._files
    files.replace(ticket, b"1")
    lease.release(turn)
    taken: list[int] = []

    def batch_comes() -> None:
        if not taken:
            files.delete(ticket)
            other = TurnLease(
                fake_environment(files, clock=clock, names="batch"),
                TablePaths("table"),
                timeout_ms=30_000,
                wait_timeout_ms=600_000,
                table="shop.orders",
            )
            batch_turn = other.acquire(holder="batch", commit_user="batch", purpose="write")
            taken.append(batch_turn.number)
            other.release(batch_turn)

    clock.meanwhile = batch_comes
    again = lease.acquire(holder="stream", commit_user="stream", purpose="write")

    assert (taken, again.number) == ([2], 3)


def test_the_ticket_of_a_dead_waiter_holds_nobody_up_for_long() -> None:
    clock = FakeClock()
    lease = _lease(clock)
    turn = lease.acquire(holder="stream", commit_user="stream", purpose="write")
    lease._files.replace(TablePaths("table").waiting_path("dead"), b"1")
    lease.release(turn)

    lease.acquire(holder="stream", commit_user="stream", purpose="write")

    assert clock.monotonic() < 3


def test_a_sleeper_finds_out_however_many_turns_it_slept_through() -> None:
    lease = _lease(FakeClock())
    sleeper = lease.acquire(holder="a", commit_user="a", purpose="write")

    for _ in range(20):
        lease.release(lease.acquire(holder="b", commit_user="b", purpose="write"))
        with pytest.raises(LeaseLostError, match="taken over"):
            lease.check(sleeper)


def test_a_turn_that_had_come_and_gone_before_it_was_taken_is_not_taken() -> None:
    lease = _lease(FakeClock())
    for _ in range(9):
        lease.release(lease.acquire(holder="a", commit_user="a", purpose="write"))

    late = lease._create(2, "late", "late", "write", taken_over=False)

    assert late is None
    assert lease.newest() == 9


def test_old_leases_are_forgotten() -> None:
    lease = _lease(FakeClock())

    for _ in range(20):
        lease.release(lease.acquire(holder="a", commit_user="a", purpose="write"))

    assert len(lease._files.list_directory("table/lease")) < 12
