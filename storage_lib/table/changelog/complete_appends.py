"""Changes of one append with their pre-images, which are looked up in its snapshot without its own files.

So neither the previous snapshot nor any state is needed. A key may be in several files of one append, in order; the row
in an earlier file is then the pre-image of the row in the next one.
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
    """Reads the changes of appends with their pre-images. Stateless, so threads may share it."""

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
        """Yield rows and kinds (int8) of one split of ``SnapshotChanges.splits``, with ``-U`` and ``+U`` adjacent."""
        snapshot = self._snapshots.load(split.snapshot_id)
        for position, file in enumerate(split.files):
            later = {each.file_name for each in split.files[position:]}
            for rows, kinds in together(self._changes.read_split(replace(split, files=(file,)))):
                keys = pa.Table.from_batches([rows]).select(self._primary_keys)
                # A key that moves between partitions or dynamic buckets is retracted where it was.
                place = (split.partition, split.bucket)
                old = self._lookup.rows_of_bucket(snapshot, place, keys, left_out=later)
                changes = complete_changes(rows, kinds, old, self._primary_keys)
                if changes.rows.num_rows:
                    yield changes.rows, changes.kinds


def together(changes: Iterable[tuple[pa.RecordBatch, pa.Array]]) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Combine the changes into fewer batches, bounded by rows and bytes, so that one look-up serves many changes."""
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
