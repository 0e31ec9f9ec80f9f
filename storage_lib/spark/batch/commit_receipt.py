"""Pass the snapshot id of a batch write from the committing process back to the caller.

Spark commits in a separate Python process on the driver's machine and returns no result from it, so the id is passed
through a file in a private directory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from storage_lib.io.after_commit import after_commit

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable

_NOTHING = "nothing was committed"


@contextmanager
def commit_receipt() -> Iterator[Path]:
    """Yield a path for the receipt of one write; its directory is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="dynamic-table-commit-", ignore_cleanup_errors=True) as directory:
        yield Path(directory, "snapshot")


def leave_receipt(path: str, table: str, snapshot: Snapshot | None) -> None:
    """Write the snapshot's id to the receipt after the commit; a failure does not raise."""
    with after_commit(f"table {table}: telling Spark's driver which snapshot the write became"):
        Path(path).write_text(_NOTHING if snapshot is None else str(snapshot.id), encoding="ascii")


def committed_snapshot(
    path: Path, table: DynamicTable, user: str, identifier: int, *, after: int = 0
) -> Snapshot | None:
    """Return the snapshot of a finished write, or None if there was nothing to write.

    Searches the snapshots after ``after`` by ``user`` and ``identifier`` if the receipt cannot be read.
    """
    try:
        receipt = path.read_text(encoding="ascii")
    except OSError:
        found = table.inspect.find_commit(user, identifier)
        return None if found is None or found.id <= after else found
    return None if receipt == _NOTHING else table.inspect.snapshot(int(receipt))
