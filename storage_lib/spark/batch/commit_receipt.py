"""Which snapshot a batch write became, from the process that commits it to the one that asked for it.

Spark commits in a Python process of its own on the driver's machine, and returns nothing of what that did. A file in a
private directory does.
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
    """A path for the receipt of one write, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="dynamic-table-commit-", ignore_cleanup_errors=True) as directory:
        yield Path(directory, "snapshot")


def leave_receipt(path: str, table: str, snapshot: Snapshot | None) -> None:
    """Note the snapshot of a commit that has happened; never fails."""
    with after_commit(f"table {table}: telling Spark's driver which snapshot the write became"):
        Path(path).write_text(_NOTHING if snapshot is None else str(snapshot.id), encoding="ascii")


def committed_snapshot(path: Path, table: DynamicTable, user: str, identifier: int) -> Snapshot | None:
    """The snapshot of a write that has ended, None if there was nothing to write.

    It is searched for by its identity only where the receipt could not be left.
    """
    try:
        receipt = path.read_text(encoding="ascii")
    except OSError:
        return table.inspect.find_commit(user, identifier)
    return None if receipt == _NOTHING else table.inspect.snapshot(int(receipt))
