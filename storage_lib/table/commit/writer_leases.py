"""Acquires and releases the lease of a table's writers for one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from storage_lib.errors import StorageError

if TYPE_CHECKING:
    from storage_lib.table.protocol.lease import Lease
    from storage_lib.table.protocol.table_context import TableContext


class WriterLeases:
    """The lease, as used by all commits to one table.

    With ``fences_first`` a writer that takes the lease over first ends the previous holder's open log transactions.
    """

    def __init__(self, context: TableContext, *, fences_first: bool = False) -> None:
        self._environment = context.environment
        self._leases = context.leases
        self._log = context.log
        self._bucket_count = len(context.schema.bucket_numbers)
        self._fences_first = fences_first

    def take(self, commit_user: str, purpose: str) -> Lease:
        """Acquire the lease, waiting for it; ``UnavailableError`` on timeout."""
        holder = f"{commit_user}/{self._environment.new_name()}"
        lease = self._leases.acquire(holder=holder, commit_user=commit_user, purpose=purpose)
        if self._fences_first:
            # If this fails, the lease is not released, so that the next holder takes it over and fences again.
            self.fence_previous_holder(lease)
        return lease

    def release(self, lease: Lease | None) -> None:
        """Release the lease, if there is one."""
        if lease is not None:
            self._leases.release(lease)

    def check(self, lease: Lease) -> None:
        """Raise ``LeaseLostError`` if another writer has taken the lease over."""
        self._leases.check(lease)

    @contextmanager
    def renewed(self, lease: Lease | None) -> Iterator[None]:
        """Renew the lease while the body runs."""
        with nullcontext() if lease is None else self._leases.beating(lease):
            yield

    @contextmanager
    def held(self, lease: Lease | None) -> Iterator[None]:
        """Renew the lease while the body runs, and release it at the end."""
        try:
            with self.renewed(lease):
                yield
        finally:
            # A failed release does not fail the commit: the lease expires by itself.
            with suppress(StorageError):
                self.release(lease)

    def fence_previous_holder(self, lease: Lease) -> None:
        """End the transactions that a crashed holder left open, which would block readers until they time out."""
        if lease.taken_over and self._log is not None:
            self._leases.check(lease)
            for slot in range(self._bucket_count):
                self._log.begin(slot).abort()
