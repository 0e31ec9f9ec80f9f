"""Takes the lease of a table's writers for one commit, and gives it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from storage_lib.errors import StorageError

if TYPE_CHECKING:
    from storage_lib.table.protocol.table_context import TableContext
    from storage_lib.table.protocol.turn import Turn


class WriterTurns:
    """For all commits to one table.

    With ``fences_first`` a writer that takes the lease over first ends the open log transactions of its holder.
    """

    def __init__(self, context: TableContext, *, fences_first: bool = False) -> None:
        self._environment = context.environment
        self._lease = context.lease
        self._log = context.log
        self._bucket_count = len(context.schema.bucket_numbers)
        self._fences_first = fences_first

    def take(self, commit_user: str, purpose: str) -> Turn:
        """Wait for the lease; ``UnavailableError`` if it cannot be had in time."""
        holder = f"{commit_user}/{self._environment.new_name()}"
        turn = self._lease.acquire(holder=holder, commit_user=commit_user, purpose=purpose)
        if self._fences_first:
            # If this fails the lease is not released: the next holder has to know that it is still to be done.
            self.fence_previous_holder(turn)
        return turn

    def release(self, turn: Turn | None) -> None:
        """Give the lease back, if there is one."""
        if turn is not None:
            self._lease.release(turn)

    def check(self, turn: Turn) -> None:
        """Raise ``LeaseLostError`` if somebody else has taken the lease over."""
        self._lease.check(turn)

    @contextmanager
    def renewed(self, turn: Turn | None) -> Iterator[None]:
        """Renew the lease while the body runs."""
        with nullcontext() if turn is None else self._lease.beating(turn):
            yield

    @contextmanager
    def held(self, turn: Turn | None) -> Iterator[None]:
        """Renew the lease while the body runs, and release it at the end."""
        try:
            with self.renewed(turn):
                yield
        finally:
            # A failure to release does not fail the commit: the lease expires by itself.
            with suppress(StorageError):
                self.release(turn)

    def fence_previous_holder(self, turn: Turn) -> None:
        """End the transactions that a crashed holder left open, which would block readers until they time out."""
        if turn.taken_over and self._log is not None:
            self._lease.check(turn)
            for slot in range(self._bucket_count):
                self._log.begin(slot).abort()
