"""One of several processes that write to one table with dynamic buckets concurrently.

python -m tests.support.dynamic_bucket_process WAREHOUSE WRITER WRITERS COMMITS [KILLED_AT]

Each writer changes only keys equal to its number modulo WRITERS, in an order that its number determines, and retries
each commit until it succeeds. It resumes where an earlier process with the same number stopped. With KILLED_AT it
kills itself at that storage call.
"""

from __future__ import annotations

import os
import signal
import sys
from random import Random
from typing import Any

import pyarrow as pa

from storage_lib import open_catalog
from storage_lib.errors import RetryableError
from storage_lib.io.local.local_file_io import LocalFileIO

NAME = "db.t"
KEYS = 18
Change = tuple[str, int, str, int]


def changes_of(writer: int, writers: int, commit: int) -> list[Change]:
    """Return (kind, key, partition, number) of one commit: inserts, updates, moves between partitions and deletes."""
    rng = Random(1000 * writer + commit)  # noqa: S311  chance, not secrets
    own = range(writer, KEYS, writers)
    return [
        (rng.choice(("+U", "+U", "+U", "-D")), rng.choice(own), rng.choice("xyz"), rng.randrange(100))
        for _ in range(rng.randint(1, 6))
    ]


def rows_after(writers: int, commits: int, *, crosses_partitions: bool) -> list[tuple[int, str, int]]:
    """Return the table's expected rows after all commits of all writers."""
    rows: dict[object, tuple[int, str, int]] = {}
    for writer in range(writers):
        for commit in range(1, commits + 1):
            for kind, key, partition, number in changes_of(writer, writers, commit):
                primary_key = key if crosses_partitions else (key, partition)
                rows.pop(primary_key, None)
                if kind == "+U":
                    rows[primary_key] = (key, partition, number)
    return sorted(rows.values())


def main(warehouse: str, writer: int, writers: int, commits: int, killed_at: int | None) -> None:
    if killed_at is not None:
        _die_at(killed_at)
    table = open_catalog(warehouse).load_table(NAME)
    for commit in range(1, commits + 1):
        kinds, keys, partitions, numbers = zip(*changes_of(writer, writers, commit), strict=True)
        rows = pa.table({"id": keys, "p": partitions, "n": numbers, "_row_kind": kinds})
        while True:
            try:
                table.append(rows, commit_user=str(writer), commit_identifier=commit)
            except RetryableError:
                continue
            break


def _die_at(call: int) -> None:
    """Send SIGKILL to this process before the ``call``-th write or deletion of a file."""
    left = iter(range(call, 0, -1))

    def counted(name: str) -> None:
        inner = getattr(LocalFileIO, name)

        def counting(self: LocalFileIO, *given: Any, **named: Any) -> Any:
            if next(left, 0) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return inner(self, *given, **named)

        setattr(LocalFileIO, name, counting)

    for name in ("write_bytes", "replace", "create_if_absent", "open_output", "delete"):
        counted(name)


if __name__ == "__main__":
    warehouse, *numbers = sys.argv[1:]
    writer, writers, commits, *killed_at = map(int, numbers)
    main(warehouse, writer, writers, commits, killed_at[0] if killed_at else None)
