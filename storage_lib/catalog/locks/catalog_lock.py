"""A lock on one table that all processes of a catalog see: for stores that can't create a file if it is absent.

A holder renews its lock by heartbeats. A waiter that sees no heartbeat for the holder's time-out, measured by its own
clock, takes the lock over. So clocks of different machines are never compared, and a crashed process blocks others for
no longer than the time-out. A holder that lost its lock learns of it at the next ``Hold.check``, and therefore has to
call that right before it writes.
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
    """Seconds: a holder that does not renew for ``timeout`` loses the lock, a waiter gives up after ``wait``."""

    timeout: float = 30.0
    wait: float = 480.0
    pause_max: float = 1.0


class Hold(Protocol):
    """The lock, as its holder has it."""

    def check(self) -> None:
        """Return if the lock is still held; ``LeaseLostError`` if somebody else took it over, or may have."""


class NoHold:
    """Of catalogs where nobody has to wait: one atomic step decides."""

    def check(self) -> None:
        """Nothing can be lost."""


class LockFactory(Protocol):
    """Makes the same lock in whatever process this is. Picklable."""

    def create(self) -> CatalogLock:
        """Open the lock; to be closed."""


class CatalogLock(ABC):
    """Locks of the tables of one catalog (FLIP-188's ``CatalogLock``). Thread-safe; not reentrant.

    Kinds say how a lock is asked for, kept and given back; ``ticket`` is theirs.
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
        """What ``action`` returns, while nobody else runs one for that table.

        Raises ``UnavailableError`` if the lock can't be had in time, ``LeaseLostError`` if it was lost meanwhile:
        then the action of another holder may have run at the same time.
        """
        with self.hold(database, table) as hold:
            answer = action()
            hold.check()
            return answer

    @contextmanager
    def hold(self, database: str, table: str) -> Iterator[Hold]:
        """Hold the lock inside the block, and keep it alive."""
        held = _Held(self, self._acquired(database, table))
        try:
            yield held
        finally:
            held.end()

    @abstractmethod
    def ask(self, database: str, table: str) -> str | None:
        """Try once, waiting for nobody; a ticket if the lock is ours now, None if somebody has it."""

    @abstractmethod
    def is_beaten(self, ticket: str) -> str | None:
        """Show life; the ticket from now on, None if the lock was lost."""

    @abstractmethod
    def give_back(self, ticket: str) -> None:
        """Let the next one have it; fine if it was lost."""

    @abstractmethod
    def take_over(self, database: str, table: str, seen: str) -> str | None:
        """Take the lock from a holder whose sign of life is still ``seen``; None if it is not."""

    @abstractmethod
    def sign_of_life(self, database: str, table: str) -> tuple[str, float] | None:
        """What changes when the holder beats, and its time-out in seconds; None if nobody holds the lock."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""

    def _acquired(self, database: str, table: str) -> str:
        """A ticket, however long it takes."""
        started = self._clock.monotonic()
        watch = _Watch(started)
        pause = _FIRST_PAUSE_SECONDS
        while True:
            ticket = self.ask(database, table)
            now = self._clock.monotonic()
            if ticket is None and now >= watch.next_look:
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
        """By which time-outs are measured."""
        return self._clock


class _Watch:
    """The last sign of life of the holder that a waiter has seen, by the waiter's clock."""

    def __init__(self, now: float) -> None:
        self.sign = "nobody"
        self.next_look = now
        self.is_over = False
        self._since = now

    def see(self, life: tuple[str, float] | None, now: float) -> None:
        """Note whether the holder has moved; the next look may wait a while."""
        sign, timeout = life or ("nobody", 0.0)
        if sign != self.sign:
            self.sign, self._since = sign, now
        self.is_over = life is not None and now - self._since >= timeout
        self.next_look = now + timeout / _BEATS_PER_TIMEOUT


class _Held:
    """A lock that is kept alive by a thread of its own."""

    def __init__(self, lock: CatalogLock, ticket: str) -> None:
        self._lock = lock
        self._ticket: str | None = ticket
        self._alive_at = lock.clock.monotonic()
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._beats_every = lock.settings.timeout / _BEATS_PER_TIMEOUT
        threading.Thread(target=self._beat_on, name="catalog-lock", daemon=True).start()

    def check(self) -> None:
        """See ``Hold.check``. Asks the lock's home, so that a wrong clock alone fools nobody."""
        self._beat()
        silent = self._lock.clock.monotonic() - self._alive_at
        if self._ticket is None or silent >= self._lock.settings.timeout:
            message = (
                "the table's lock expired and was taken over by another process, because it was not "
                "renewed in time; try again"
            )
            raise LeaseLostError(message)

    def end(self) -> None:
        """Give the lock back."""
        self._ended.set()
        with self._guard:
            ticket, self._ticket = self._ticket, None
            if ticket is not None:
                self._lock.give_back(ticket)

    def _beat_on(self) -> None:
        while not self._ended.wait(self._beats_every):
            # The store did not answer: the next renewal or check finds out.
            with _nothing_said():
                self._beat()

    def _beat(self) -> None:
        with self._guard:
            if self._ticket is not None and not self._ended.is_set():
                asked_at = self._lock.clock.monotonic()
                self._ticket = self._lock.is_beaten(self._ticket)
                self._alive_at = asked_at


@contextmanager
def _nothing_said() -> Iterator[None]:
    try:
        yield
    except StorageError:
        return
