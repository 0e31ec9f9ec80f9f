"""One of several processes that write to one table concurrently, each in a different mode.

python -m tests.support.table_writing_process WAREHOUSE SERVERS append|compact|overwrite|stall NAME COMMITS

``append``   upserts a counter that all writers share, and one own row per commit; repeats every third commit
``compact``  compacts one partition after the other
``overwrite`` replaces partition ``untracked`` with its newest number, without change tracking
``stall``    writes its row, prints "written" and waits for a line before it commits; prints the error's name, or "done"
"""

from __future__ import annotations

import sys
import time

import pyarrow as pa

from storage_lib import DynamicTable, StorageError, open_catalog
from storage_lib.errors import CommitConflictError, LeaseLostError
from tests.support.orders_table import NAME, rows


def main(warehouse: str, servers: str, role: str, name: str, commits: int) -> None:
    table = open_catalog(warehouse, {"log.kafka.bootstrap.servers": servers}).load_table(NAME)
    {"append": _append, "compact": _compact, "overwrite": _overwrite, "stall": _stall}[role](table, name, commits)


def own_rows(name: str, identifier: int) -> pa.Table:
    """Return the rows of commit ``identifier`` of writer ``name`` (a digit)."""
    own = int(name) * 1000 + identifier
    return rows(f"+I a {own} {identifier}", f"+U a 0 {own}", f"+I b {own} {identifier}")


def _append(table: DynamicTable, name: str, commits: int) -> None:
    for identifier in range(1, commits + 1):
        for _ in range(2 if identifier % 3 == 0 else 1):
            _until_it_is_done(table, name, identifier)


def _until_it_is_done(table: DynamicTable, name: str, identifier: int) -> None:
    while True:
        try:
            table.append(own_rows(name, identifier), commit_user=name, commit_identifier=identifier)
        except LeaseLostError:
            continue
        return


def _compact(table: DynamicTable, _name: str, commits: int) -> None:
    for _ in range(commits):
        try:
            table.compact()
        except CommitConflictError:
            continue
        time.sleep(0.05)


def _overwrite(table: DynamicTable, name: str, commits: int) -> None:
    done = 0
    while done < commits:
        try:
            table.overwrite(
                rows(f"+I untracked {name} {done}"),
                partition={"dt": "untracked"},
                change_tracking=False,
                commit_user=f"overwrite-{name}",
                commit_identifier=done + 1,
            )
        except CommitConflictError:
            continue
        done += 1


def _stall(table: DynamicTable, name: str, _commits: int) -> None:
    order = table.new_write().begin(commit_user=name)
    task = table.new_write().open_task(order)
    task.write(own_rows(name, 1))
    message = task.prepare_commit()
    print("written", flush=True)
    sys.stdin.readline()
    try:
        table.new_write().commit(order, [message], 1)
    except StorageError as error:
        print(type(error).__name__, flush=True)
    else:
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
