"""The driver's side of a lease: kept alive until its tasks beat for it, and left in order when a write is given up."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from storage_lib.errors import StorageError

if TYPE_CHECKING:
    from storage_lib.spark.tasks.table_tasks import TaskMessage
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.lease import Lease
    from storage_lib.table.protocol.write_context import WriteContext


def keep_alive(table: DynamicTable, lease: Lease) -> None:
    """Beat for ``lease`` from this process until it is over; returns at once.

    Spark's planning process takes the lease and stays alive between micro-batches, but does not see the commit, which
    happens in another process; so the thread watches the lease itself. It gives up after ``lease.wait-timeout``: a
    lease whose write was forgotten must not stop other writers for ever.
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


def give_up(
    table: DynamicTable,
    commit_user: str,
    messages: Sequence[TaskMessage | None],
    write_context: WriteContext | None = None,
) -> None:
    """Undo a write that Spark aborts.

    Without a None in ``messages`` every task had finished and a commit was at least begun: it undoes itself if it
    fails, and if its outcome is unknown nothing may be deleted. Otherwise no commit was begun, and the finished tasks'
    files go. Killed tasks may have left log transactions open, which would hold committed readers up, so the lease is
    opened once more: taking over one's own lease ends them.
    """
    finished = [message for message in messages if message is not None]
    if messages and len(finished) == len(messages):
        return
    write_context = finished[0].write_context if finished else write_context
    # Spark reports why the write failed; what can't be tidied now, the next opener of the table does.
    with suppress(StorageError):
        if _holds_lease(table, commit_user) and (write_context is None or write_context.writes_log):
            again = table.new_write().begin(commit_user=commit_user)
            table.new_write().abort(again, [])
    if write_context is not None:
        with suppress(StorageError):
            table.new_write().abort(write_context, [message.written for message in finished])


def _holds_lease(table: DynamicTable, commit_user: str) -> bool:
    holder = table.inspect.lease_holder()
    return holder is not None and holder.startswith(f"{commit_user}/")
