"""One of several processes that commit to the same table concurrently: ``<root> <options, as JSON> <user> <commits>``.

Each commit adds a row of its own and raises a counter of its own; a compaction follows every third commit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from storage_lib.errors import CommitConflictError
from storage_lib.io.environment import system_environment
from storage_lib.io.file_io_factory import file_io_of
from tests.support.stored_table import StoredTable, orders_schema


def main(root: str, options: Mapping[str, str], user: str, commits: int) -> None:
    table = StoredTable(orders_schema(), system_environment(file_io_of(root, options)), root=root)
    for identifier in range(commits):
        rows = [("a", int(user) * 1000 + identifier, user), ("counters", int(user), str(identifier))]
        table.append(rows, user=user, identifier=identifier)
        # Repeat the commit, as after a lost response: it must not take effect twice.
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
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
