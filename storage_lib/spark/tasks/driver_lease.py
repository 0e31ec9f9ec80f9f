"""The driver's side of a lease: renew it during a write, and clean up when Spark aborts the write."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from storage_lib.errors import StorageError

if TYPE_CHECKING:
    from storage_lib.spark.tasks.table_tasks import TaskMessage
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.lease import Lease
    from storage_lib.table.protocol.write_context import WriteContext


def keep_alive(table: DynamicTable, lease: Lease) -> None:
    """Renew ``lease`` from a daemon thread until it is released or replaced; returns at once.

    Spark's planning process acquires the lease and stays alive between micro-batches, but the commit happens in another
    process, so the thread checks the lease itself. It stops after ``lease.wait-timeout``, so that the lease of an
    abandoned write does not block other writers forever.
    """
    leases = table.new_write().leases
    seconds = table.options.lease_timeout_ms / 1000 / 6
    beats_max = int(table.options.lease_wait_timeout_ms / 1000 / seconds) + 1

    def beat_until_over() -> None:
        pause = threading.Event()
        for _ in range(beats_max):
            pause.wait(seconds)
            with suppress(StorageError, OSError):
                if leases.newest() != lease.number or leases.holder() is None:
                    return
                leases.beat(lease)

    threading.Thread(target=beat_until_over, name=f"lease-{lease.number}", daemon=True).start()


@contextmanager
def given_back(table: DynamicTable, write_context: WriteContext | None) -> Iterator[None]:
    """Renew the lease of ``write_context`` while the body runs; abort the commit and release the lease if it fails."""
    if write_context is None or write_context.lease is None:
        yield
        return
    keep_alive(table, write_context.lease)
    try:
        yield
    except BaseException:
        # Report why the write failed rather than a failed release: the lease expires by itself.
        with suppress(StorageError):
            table.new_write().abort(write_context, [])
        raise


def give_up(
    table: DynamicTable,
    commit_user: str,
    messages: Sequence[TaskMessage | None],
    write_context: WriteContext | None = None,
) -> None:
    """Undo a write that Spark aborts.

    If no message is None, all tasks had finished and the commit was at least begun. A commit undoes itself if it fails,
    and nothing may be deleted if its outcome is unknown, so nothing is done here. Otherwise no commit was begun, and
    the files of finished tasks are deleted. Killed tasks may have left log transactions open, which would block
    read-committed readers, so the lease is acquired once more: taking over one's own lease aborts them.
    """
    finished = [message for message in messages if message is not None]
    if messages and len(finished) == len(messages):
        return
    write_context = finished[0].write_context if finished else write_context
    # Spark reports why the write failed; the next writer of the table cleans up the rest.
    with suppress(StorageError):
        if _holds_lease(table, commit_user) and (write_context is None or write_context.writes_log):
            again = table.new_write().begin(commit_user=commit_user, refreshes=True)
            table.new_write().abort(again, [])
    if write_context is not None:
        with suppress(StorageError):
            table.new_write().abort(write_context, [message.written for message in finished])


def _holds_lease(table: DynamicTable, commit_user: str) -> bool:
    holder = table.inspect.lease_holder()
    return holder is not None and holder.startswith(f"{commit_user}/")
