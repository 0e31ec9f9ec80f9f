"""The lease of a table: numbered, held by one writer at a time, and good for one commit.

    lease/lease-<n>      who holds lease n; made by create-if-absent, never rewritten: n is the fencing number
    lease/beat-<n>       rewritten by the holder while it works; a waiter only compares it with what it saw before
    lease/released-<n>   made when the holder releases lease n
    lease/waiting-<name> the ticket of a waiter

    holder   create lease-4 ── beat ── beat ── commit ── released-4
    waiter        └ ticket ── beat moved ── beat moved ────────┴─ create lease-5 ── …

No clocks are compared: a waiter takes over when the beat has not changed for ``lease.timeout`` by its own clock. The
lease gives liveness only. Safety comes from the snapshot: a stalled holder fails at ``check`` before the snapshot is
created, or because another lease's snapshot came first (``SnapshotPublisher``).
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from storage_lib.errors import LeaseLostError, NotFoundError, StorageError, UnavailableError
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.lease_paths import LeaseListing, LeasePaths
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.encoding.json_document import UNDECODABLE

_POLL_SECONDS = 0.05
_YIELD_SECONDS = 2.0
_LEASES_KEPT = 3
_LOGGER = logging.getLogger(__name__)
_NOBODY_KNOWS = {"holder": "?", "commit_user": "", "purpose": "?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Lease ``number`` of one holder; picklable, so that tasks may beat for their driver.

    ``taken_over``: the previous holder did not release it, so it may have left log transactions open.
    """

    number: int
    holder: str
    taken_over: bool


class TableLeases:
    """Acquires and releases the leases of one table. Thread-safe, and safe across processes."""

    def __init__(
        self, environment: Environment, paths: TablePaths, *, timeout_ms: int, wait_timeout_ms: int, table: str
    ) -> None:
        self._environment = environment
        self._files = environment.file_io
        self._root = paths.root
        self._paths = LeasePaths(paths.lease_directory)
        self._timeout_seconds = timeout_ms / 1000
        self._wait_timeout_seconds = wait_timeout_ms / 1000
        self._table = table

    def acquire(self, *, holder: str, commit_user: str, purpose: str) -> Lease:
        """Wait for the lease and acquire it.

        A holder of the same ``commit_user`` is an earlier incarnation of the caller (a stream that was restarted,
        a task tried again), so its lease is taken over at once; that is as safe as any other take-over.

        Raises ``UnavailableError`` naming the holder when the wait exceeds ``lease.wait-timeout``.
        """
        clock = self._environment.clock
        started = still_since = clock.monotonic()
        seen: tuple[int, bytes] | None = None
        ticket: str | None = None
        listing = self._let_waiters_pass(commit_user)
        try:
            while True:
                newest, held_by = listing.newest, self._held_by(listing)
                if newest is None or held_by is None or held_by["commit_user"] == commit_user:
                    lease = self._create(
                        (newest or 0) + 1, holder, commit_user, purpose, taken_over=held_by is not None
                    )
                    if lease is not None:
                        return lease
                    listing = self._listing()
                    continue
                now = clock.monotonic()
                current = (newest, self._beat_of(newest))
                if current != seen:
                    seen, still_since = current, now
                elif now - still_since >= self._timeout_seconds:
                    lease = self._create(newest + 1, holder, commit_user, purpose, taken_over=True)
                    if lease is not None:
                        return lease
                    listing = self._listing()
                    continue
                if now - started >= self._wait_timeout_seconds:
                    message = (
                        f"table {self._table}: no lease acquired after {self._wait_timeout_seconds:g} s; "
                        f"{held_by['holder']} has held lease {newest} for {held_by['purpose']!r} since. "
                        "Try again later, stop that writer, or raise lease.wait-timeout"
                    )
                    raise UnavailableError(message)
                ticket = self._renew_ticket(ticket)
                clock.sleep(_POLL_SECONDS)
                listing = self._listing()
        finally:
            if ticket is not None:
                # A failed deletion must not lose the acquired lease; a later writer deletes the ticket.
                with suppress(StorageError):
                    self._files.delete(ticket, below=self._root)

    def release(self, lease: Lease) -> None:
        """Release the lease; harmless if it was lost or released before."""
        self._files.create_if_absent(self._paths.released(lease.number), b"")

    def beat(self, lease: Lease) -> None:
        """Show that the holder is alive."""
        self._files.replace(self._paths.beat(lease.number), self._environment.new_name().encode())

    @contextmanager
    def beating(self, lease: Lease) -> Iterator[None]:
        """Beat from a thread while the body runs; an outage of storage only means a missed beat."""
        done = threading.Event()

        def keep_beating() -> None:
            while not done.wait(self._timeout_seconds / 6):
                try:
                    self.beat(lease)
                except (StorageError, OSError):
                    continue

        thread = threading.Thread(target=keep_beating, name=f"beat-{lease.number}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def check(self, lease: Lease) -> None:
        """Raise ``LeaseLostError`` if a later lease was acquired, ``NotFoundError`` if the table was dropped."""
        # Checks the newest lease, not only the next: after a long stall the next one may have been deleted.
        newest = self.newest()
        if newest is None:
            message = (
                f"table {self._table}: it was dropped while it was written to by {lease.holder}. Nothing became visible"
            )
            raise NotFoundError(message)
        if newest != lease.number:
            message = (
                f"table {self._table}: lease {lease.number} of {lease.holder} was taken over by another writer, "
                "because it did not beat for longer than lease.timeout. Nothing became visible; write again"
            )
            raise LeaseLostError(message)

    def newest(self) -> int | None:
        """Return the number of the newest lease; None if there never was one."""
        return self._listing().newest

    def holder(self) -> str | None:
        """Return the name of the lease's holder; None if it is free."""
        held_by = self._held_by(self._listing())
        return None if held_by is None else held_by["holder"]

    def _listing(self) -> LeaseListing:
        return self._paths.listing([entry.name for entry in self._files.list_directory(self._paths.directory)])

    def _create(self, number: int, holder: str, commit_user: str, purpose: str, *, taken_over: bool) -> Lease | None:
        content = json.dumps({"holder": holder, "commit_user": commit_user, "purpose": purpose})
        if not self._files.create_if_absent(self._paths.lease(number), content.encode()):
            return None
        listing = self._listing()
        if listing.newest != number:
            # This process stalled: the lease of this number was used and deleted meanwhile.
            self._files.delete(self._paths.lease(number), below=self._root)
            return None
        with suppress(StorageError):
            self._forget_before(number - _LEASES_KEPT, listing)
        return Lease(number=number, holder=holder, taken_over=taken_over)

    def _held_by(self, listing: LeaseListing) -> dict[str, str] | None:
        """Return the holder of the newest lease; None if it was released, or there is none."""
        number = listing.newest
        if number is None or listing.is_released:
            return None
        try:
            return self._decoded(number, self._files.read_bytes(self._paths.lease(number)))
        except NotFoundError:  # deleted meanwhile because it is old; the caller lists again
            return dict(_NOBODY_KNOWS)

    def _decoded(self, number: int, content: bytes) -> dict[str, str]:
        """Return the holder of a lease; unknown for a damaged file, whose lease is taken over if its beat stops."""
        try:
            found = json.loads(content)
            return {key: str(found[key]) for key in _NOBODY_KNOWS}
        except UNDECODABLE:
            _LOGGER.warning("%s is damaged: the holder of the lease is unknown", self._paths.lease(number))
            return dict(_NOBODY_KNOWS)

    def _beat_of(self, number: int) -> bytes:
        try:
            return self._files.read_bytes(self._paths.beat(number))
        except NotFoundError:
            return b""

    def _renew_ticket(self, ticket: str | None) -> str:
        path = ticket or self._paths.waiting(self._environment.new_name())
        self._files.replace(path, self._environment.new_name().encode())
        return path

    def _let_waiters_pass(self, commit_user: str) -> LeaseListing:
        """Let a waiter acquire the next lease: the last holder does not compete with it. Returns the newest listing.

        A ticket that is not renewed meanwhile belongs to a crashed waiter, and is deleted.
        """
        clock = self._environment.clock
        listing = self._listing()
        newest = listing.newest
        if newest is None or not listing.tickets or self._commit_user_of(newest) != commit_user:
            return listing
        tickets = {path: self._content(path) for path in listing.tickets}
        started = clock.monotonic()
        while tickets and listing.newest == newest:
            if clock.monotonic() - started >= _YIELD_SECONDS:
                for path, content in tickets.items():
                    if self._content(path) == content:
                        self._files.delete(path, below=self._root)
                break
            clock.sleep(_POLL_SECONDS)
            listing = self._listing()
            tickets = {path: content for path, content in tickets.items() if path in listing.tickets}
        return listing

    def _commit_user_of(self, number: int) -> str | None:
        try:
            return self._decoded(number, self._files.read_bytes(self._paths.lease(number)))["commit_user"]
        except NotFoundError:
            return None

    def _content(self, path: str) -> bytes | None:
        try:
            return self._files.read_bytes(path)
        except NotFoundError:
            return None

    def _forget_before(self, number: int, listing: LeaseListing) -> None:
        for of, path in listing.numbered:
            if of < number:
                self._files.delete(path, below=self._root)
