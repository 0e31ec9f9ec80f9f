"""The changes of one append, with the rows before them: looked up in its snapshot without its own files.

So neither the snapshot before it nor any state is needed. A key may be in several files of one append, the later ones
newer; what an earlier one says is then what the later one follows upon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.split import Split
from storage_lib.table.changelog.snapshot_changes import SnapshotChanges
from storage_lib.table.changes.update_before import complete_changes, joined
from storage_lib.table.read.point_lookup import PointLookup

ROWS_AT_ONCE = 65_536
BYTES_AT_ONCE = 64 << 20


class CompleteAppends:
    """Reads what appends changed; holds no state, so threads may share it."""

    def __init__(
        self,
        *,
        changes: SnapshotChanges,
        snapshots: SnapshotHistory,
        lookup: PointLookup,
        primary_keys: Sequence[str],
    ) -> None:
        self._changes = changes
        self._snapshots = snapshots
        self._lookup = lookup
        self._primary_keys = tuple(primary_keys)

    def read_split(self, split: Split) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Rows and kinds (int8) of one split of ``SnapshotChanges.splits``, pairs of ``-U`` and ``+U`` adjacent."""
        snapshot = self._snapshots.load(split.snapshot_id)
        for position, file in enumerate(split.files):
            later = {each.file_name for each in split.files[position:]}
            for rows, kinds in together(self._changes.read_split(replace(split, files=(file,)))):
                keys = pa.Table.from_batches([rows]).select(self._primary_keys)
                old = self._lookup.rows_of(snapshot, keys, left_out=later)
                changes = complete_changes(rows, kinds, old, self._primary_keys)
                if changes.rows.num_rows:
                    yield changes.rows, changes.kinds


def together(changes: Iterable[tuple[pa.RecordBatch, pa.Array]]) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """The same changes in fewer batches, so that one look-up serves many of them; long rows make smaller ones."""
    held: list[tuple[pa.RecordBatch, pa.Array]] = []
    count = size = 0
    for rows, kinds in changes:
        held.append((rows, kinds))
        count += rows.num_rows
        size += rows.nbytes
        if count >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield joined(held)
            held, count, size = [], 0, 0
    if held:
        yield joined(held)
