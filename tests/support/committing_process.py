"""One of several processes that commit to the same table at once: ``<root> <user> <commits>``.

Each commit adds one row of its own and raises a counter of its own; every third is compacted afterwards.
"""

from __future__ import annotations

import sys

from storage_lib.errors import CommitConflictError
from storage_lib.io.environment import system_environment
from storage_lib.io.local_file_io import LocalFileIO
from tests.support.stored_table import StoredTable, orders_schema


def main(root: str, user: str, commits: int) -> None:
    table = StoredTable(orders_schema(), system_environment(LocalFileIO(durable=False)), root=root)
    for identifier in range(commits):
        rows = [("a", int(user) * 1000 + identifier, user), ("counters", int(user), str(identifier))]
        table.append(rows, user=user, identifier=identifier)
        # The same commit again, as after a lost answer: it must not happen twice.
        table.append(rows, user=user, identifier=identifier)
        if identifier % 3 == 0:
            compact(table)


def compact(table: StoredTable) -> None:
    messages = table.compaction_messages()
    try:
        if messages:
            table.commit(messages, user="compaction")
    except CommitConflictError:
        table.store.abort(messages)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
