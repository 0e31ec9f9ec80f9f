"""Leases: one holder at a time, taken over when they expire, fair; errors name the current holder."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage_lib import LeaseLostError, UnavailableError
from storage_lib.io.table_directory.lease_paths import LeasePaths
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.table.protocol.lease import TableLeases
from tests.support.fake_environment import FakeClock, fake_environment


class _SteppingClock(FakeClock):
    """Calls ``meanwhile`` at every sleep: the actions of others during a wait."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.meanwhile()


def _leases(clock: FakeClock, *, wait_timeout_ms: int = 600_000) -> TableLeases:
    return TableLeases(
        fake_environment(clock=clock),
        TablePaths("table"),
        timeout_ms=30_000,
        wait_timeout_ms=wait_timeout_ms,
        table="shop.orders",
    )


def test_leases_are_numbered_and_free_when_released() -> None:
    leases = _leases(FakeClock())

    first = leases.acquire(holder="a", commit_user="a", purpose="write")
    assert leases.holder() == "a"
    leases.release(first)
    assert leases.holder() is None
    second = leases.acquire(holder="b", commit_user="b", purpose="write")

    assert (first.number, second.number) == (1, 2)
    assert not second.taken_over


def test_a_waiter_gets_the_lease_as_soon_as_it_is_released() -> None:
    clock = _SteppingClock()
    leases = _leases(clock)
    first = leases.acquire(holder="a", commit_user="a", purpose="write")
    clock.meanwhile = lambda: leases.release(first)

    second = leases.acquire(holder="b", commit_user="b", purpose="write")

    assert not second.taken_over
    assert clock.monotonic() < 1


def test_a_holder_that_beats_keeps_its_lease_however_long_it_works() -> None:
    clock = _SteppingClock()
    leases = _leases(clock, wait_timeout_ms=120_000)
    first = leases.acquire(holder="slow one", commit_user="a", purpose="nightly load")
    clock.meanwhile = lambda: leases.beat(first)

    with pytest.raises(UnavailableError, match=r"slow one has held lease 1 for 'nightly load'"):
        leases.acquire(holder="b", commit_user="b", purpose="write")

    leases.check(first)


def test_a_holder_whose_beats_are_longer_apart_than_a_waiter_looks_keeps_its_lease() -> None:
    clock = _SteppingClock()
    leases = _leases(clock, wait_timeout_ms=120_000)
    first = leases.acquire(holder="slow one", commit_user="a", purpose="nightly load")
    beats: list[float] = [0.0]

    def beat_every_five_seconds() -> None:
        if clock.monotonic() - beats[-1] >= 5:
            leases.beat(first)
            beats.append(clock.monotonic())

    clock.meanwhile = beat_every_five_seconds

    with pytest.raises(UnavailableError, match="slow one has held lease 1"):
        leases.acquire(holder="b", commit_user="b", purpose="write")

    leases.check(first)


def test_a_holder_without_a_sign_of_life_is_taken_over_and_finds_out() -> None:
    clock = FakeClock()
    leases = _leases(clock)
    first = leases.acquire(holder="dead", commit_user="a", purpose="write")

    second = leases.acquire(holder="b", commit_user="b", purpose="write")

    assert second.taken_over
    assert 30 <= clock.monotonic() < 31
    leases.check(second)
    with pytest.raises(LeaseLostError, match="taken over"):
        leases.check(first)


def test_a_restarted_writer_takes_its_own_lease_over_at_once() -> None:
    clock = FakeClock()
    leases = _leases(clock)
    leases.acquire(holder="query, first run", commit_user="query", purpose="write")

    lease = leases.acquire(holder="query, second run", commit_user="query", purpose="write")

    assert lease.taken_over
    assert clock.monotonic() == 0


def test_a_writer_that_releases_its_lease_lets_a_waiter_pass_before_it_asks_again() -> None:
    clock = _SteppingClock()
    leases = _leases(clock)
    lease = leases.acquire(holder="stream", commit_user="stream", purpose="write")
    ticket = LeasePaths("table/lease").waiting("batch")
    files = leases._files
    files.replace(ticket, b"1")
    leases.release(lease)
    taken: list[int] = []

    def batch_comes() -> None:
        if not taken:
            files.delete(ticket)
            other = TableLeases(
                fake_environment(files, clock=clock, names="batch"),
                TablePaths("table"),
                timeout_ms=30_000,
                wait_timeout_ms=600_000,
                table="shop.orders",
            )
            batch_lease = other.acquire(holder="batch", commit_user="batch", purpose="write")
            taken.append(batch_lease.number)
            other.release(batch_lease)

    clock.meanwhile = batch_comes
    again = leases.acquire(holder="stream", commit_user="stream", purpose="write")

    assert (taken, again.number) == ([2], 3)


def test_the_ticket_of_a_dead_waiter_holds_nobody_up_for_long() -> None:
    clock = FakeClock()
    leases = _leases(clock)
    lease = leases.acquire(holder="stream", commit_user="stream", purpose="write")
    leases._files.replace(LeasePaths("table/lease").waiting("dead"), b"1")
    leases.release(lease)

    leases.acquire(holder="stream", commit_user="stream", purpose="write")

    assert clock.monotonic() < 3


def test_a_suspended_writer_notices_however_many_leases_passed() -> None:
    leases = _leases(FakeClock())
    sleeper = leases.acquire(holder="a", commit_user="a", purpose="write")

    for _ in range(20):
        leases.release(leases.acquire(holder="b", commit_user="b", purpose="write"))
        with pytest.raises(LeaseLostError, match="taken over"):
            leases.check(sleeper)


def test_a_lease_that_another_writer_acquired_and_released_meanwhile_is_not_acquired() -> None:
    leases = _leases(FakeClock())
    for _ in range(9):
        leases.release(leases.acquire(holder="a", commit_user="a", purpose="write"))

    late = leases._create(2, "late", "late", "write", taken_over=False)

    assert late is None
    assert leases.newest() == 9


def test_old_leases_are_forgotten() -> None:
    leases = _leases(FakeClock())

    for _ in range(20):
        leases.release(leases.acquire(holder="a", commit_user="a", purpose="write"))

    assert len(leases._files.list_directory("table/lease")) < 12
