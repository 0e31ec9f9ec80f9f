"""One of several processes that write or tier the log of one table, each in a different mode.

python -m tests.support.tiering_process WAREHOUSE SERVERS log|tier|stall-before|stall-after NAME ROUNDS

``log``   appends rows of its own to the log, round by round; then prints "written" and waits to be killed
``tier``  tiers the log round by round, under its own name; prints the errors that are worth a retry
``stall-before``, ``stall-after``  tiers once; stops before or after its snapshot, prints "stalled", resumes at a line
"""

from __future__ import annotations

import sys
from typing import Any

from storage_lib import DynamicTable, StorageError, open_catalog
from storage_lib.errors import RetryableError
from storage_lib.file_store.commit import FileStoreCommit
from tests.support.orders_table import NAME, rows


def main(warehouse: str, servers: str, role: str, name: str, rounds: int) -> None:
    table = open_catalog(warehouse, {"log.kafka.bootstrap.servers": servers}).load_table(NAME)
    if role == "log":
        _log(table, name, rounds)
    elif role == "tier":
        _tier(table, name, rounds)
    else:
        _stall(table, name, before=role == "stall-before")


def own_changes(name: str, number: int) -> list[str]:
    """Return the changes of round ``number`` of writer ``name`` (a digit); no key occurs twice."""
    own = int(name) * 1000 + number
    return [f"+I a {own} {number}", f"+I b {own} {number}"]


def write_to_log(table: DynamicTable, changes: list[str]) -> None:
    """Write to the log only, as a micro-batch does."""
    order = table.new_write().begin(commit_user="stream")
    with table.new_write().open_task(order) as write:
        write.write(rows(*changes))
        table.new_write().commit(order, [write.prepare_commit()], 1, defers_tiering=True)


def _log(table: DynamicTable, name: str, rounds: int) -> None:
    for number in range(rounds):
        write_to_log(table, own_changes(name, number))
    print("written", flush=True)
    sys.stdin.readline()


def _tier(table: DynamicTable, name: str, rounds: int) -> None:
    for _ in range(rounds):
        try:
            table.maintenance.tier_log(compact=False, commit_user=f"tierer-{name}")
        except RetryableError as error:
            print(type(error).__name__, flush=True)


def _stall(table: DynamicTable, name: str, *, before: bool) -> None:
    commit: Any = FileStoreCommit.commit

    def stalled_commit(*arguments: Any, **named: Any) -> Any:
        snapshot = None if before else commit(*arguments, **named)
        print("stalled", flush=True)
        sys.stdin.readline()
        return commit(*arguments, **named) if before else snapshot

    FileStoreCommit.commit = stalled_commit  # type: ignore[method-assign]
    try:
        table.maintenance.tier_log(compact=False, commit_user=f"tierer-{name}")
    except StorageError as error:
        print(type(error).__name__, flush=True)
    else:
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
