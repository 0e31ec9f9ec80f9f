"""Table locks shared by all processes of a catalog, for stores that lack an atomic create-if-absent.

A holder renews its lock by heartbeats. A waiter that sees no heartbeat for the holder's time-out, measured by its own
clock, takes the lock over. So clocks of different machines are never compared, and a crashed process blocks others for
no longer than the time-out. A holder learns that it lost its lock at the next ``Hold.check``, so it has to call that
right before it writes.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeVar

from storage_lib.errors import LeaseLostError, StorageError, UnavailableError
from storage_lib.io.environment import Clock

_Answer = TypeVar("_Answer")
_BEATS_PER_TIMEOUT = 4
_FIRST_PAUSE_SECONDS = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSettings:
    """Times in seconds: a lock not renewed for ``timeout`` expires, a waiter gives up after ``wait``."""

    timeout: float = 30.0
    wait: float = 480.0
    pause_max: float = 1.0


class Hold(Protocol):
    """A lock that the caller holds."""

    def check(self) -> None:
        """Raise ``LeaseLostError`` if another process has taken the lock over, or may have."""


class NoHold:
    """``Hold`` of catalogs that need no lock, because one atomic step decides."""

    def check(self) -> None:
        """Do nothing: no lock can be lost."""


class LockFactory(Protocol):
    """Creates the same lock in any process. Picklable."""

    def create(self) -> CatalogLock:
        """Create the lock, which the caller has to close."""


class CatalogLock(ABC):
    """Locks of the tables of one catalog (FLIP-188's ``CatalogLock``). Thread-safe; not reentrant.

    Subclasses define how a lock is requested, renewed and released; ``ticket`` identifies a held lock to them.
    """

    def __init__(self, settings: LockSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run_with_lock(self, database: str, table: str, action: Callable[[], _Answer]) -> _Answer:
        """Run ``action`` while holding the table's lock; return its result.

        Raises ``UnavailableError`` if the lock can't be acquired in time, ``LeaseLostError`` if it was lost meanwhile:
        then the action of another holder may have run at the same time.
        """
        with self.hold(database, table) as hold:
            answer = action()
            hold.check()
            return answer

    @contextmanager
    def hold(self, database: str, table: str) -> Iterator[Hold]:
        """Hold the table's lock within the block, renewing it in the background."""
        held = _Held(self, self._acquired(database, table))
        try:
            yield held
        finally:
            held.end()

    @abstractmethod
    def ask(self, database: str, table: str) -> str | None:
        """Try once to acquire the lock without waiting; return a ticket, or None if it is held."""

    @abstractmethod
    def is_beaten(self, ticket: str) -> str | None:
        """Renew the lock; return the ticket to use from now on, or None if the lock was lost."""

    @abstractmethod
    def give_back(self, ticket: str) -> None:
        """Release the lock; do nothing if it was lost."""

    @abstractmethod
    def take_over(self, database: str, table: str, seen: str) -> str | None:
        """Take the lock over if the holder's sign of life is still ``seen``; return a ticket, otherwise None."""

    @abstractmethod
    def sign_of_life(self, database: str, table: str) -> tuple[str, float] | None:
        """Return a text that changes with the holder's heartbeats, and its time-out in seconds; None if not held."""

    @abstractmethod
    def close(self) -> None:
        """Close connections."""

    def _acquired(self, database: str, table: str) -> str:
        """Acquire the lock, waiting for at most ``settings.wait``; return the ticket."""
        started = self._clock.monotonic()
        watch = _Watch(started)
        pause = _FIRST_PAUSE_SECONDS
        while True:
            ticket = self.ask(database, table)
            now = self._clock.monotonic()
            if ticket is None and now >= watch.next_check:
                watch.see(self.sign_of_life(database, table), now)
                if watch.is_over:
                    ticket = self.take_over(database, table, watch.sign)
            if ticket is not None:
                return ticket
            if now - started >= self.settings.wait:
                message = (
                    f"the lock of table {database}.{table} could not be acquired in {self.settings.wait:.0f} "
                    "s; its holder "
                    f"({watch.sign}) still renews it. Nothing was done; try again"
                )
                raise UnavailableError(message)
            self._clock.sleep(pause)
            pause = min(2 * pause, self.settings.pause_max)

    @property
    def clock(self) -> Clock:
        """Clock that measures time-outs."""
        return self._clock


class _Watch:
    """The holder's last sign of life that a waiter saw, timed by the waiter's clock."""

    def __init__(self, now: float) -> None:
        self.sign = "nobody"
        self.next_check = now
        self.is_over = False
        self._since = now

    def see(self, life: tuple[str, float] | None, now: float) -> None:
        """Record the holder's sign of life, and schedule the next look."""
        sign, timeout = life or ("nobody", 0.0)
        if sign != self.sign:
            self.sign, self._since = sign, now
        self.is_over = life is not None and now - self._since >= timeout
        self.next_check = now + timeout / _BEATS_PER_TIMEOUT


class _Held:
    """A held lock that a background thread renews."""

    def __init__(self, lock: CatalogLock, ticket: str) -> None:
        self._lock = lock
        self._ticket: str | None = ticket
        self._alive_at = lock.clock.monotonic()
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._beats_every = lock.settings.timeout / _BEATS_PER_TIMEOUT
        threading.Thread(target=self._beat_on, name="catalog-lock", daemon=True).start()

    def check(self) -> None:
        """See ``Hold.check``. Renews the lock, so the result does not depend on the local clock alone."""
        self._beat()
        silent = self._lock.clock.monotonic() - self._alive_at
        if self._ticket is None or silent >= self._lock.settings.timeout:
            message = (
                "the table's lock expired and was taken over by another process, because it was not "
                "renewed in time; try again"
            )
            raise LeaseLostError(message)

    def end(self) -> None:
        """Release the lock."""
        self._ended.set()
        with self._guard:
            ticket, self._ticket = self._ticket, None
            if ticket is not None:
                self._lock.give_back(ticket)

    def _beat_on(self) -> None:
        while not self._ended.wait(self._beats_every):
            # If the store does not answer, the next renewal or check retries.
            with _ignoring_outages():
                self._beat()

    def _beat(self) -> None:
        with self._guard:
            if self._ticket is not None and not self._ended.is_set():
                asked_at = self._lock.clock.monotonic()
                self._ticket = self._lock.is_beaten(self._ticket)
                self._alive_at = asked_at


@contextmanager
def _ignoring_outages() -> Iterator[None]:
    try:
        yield
    except StorageError:
        return
