"""Changes of a task for a log with pre-images (``log.changelog-mode=all``).

They are buffered, and their pre-images are looked up with one look-up per bucket. The buffer's size bounds memory,
however many rows the task writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from storage_lib.table.changes.update_before import CompleteChanges, complete_changes, joined
from storage_lib.table.write.pre_images import PreImages

HELD_BYTES_MAX = 256 << 20


class PendingChanges:
    """The changes that one task has not written to the log yet. One thread at a time."""

    def __init__(self, *, table: str, pre_images: PreImages, primary_keys: Sequence[str], held_bytes_max: int) -> None:
        self._table = table
        self._pre_images = pre_images
        self._primary_keys = tuple(primary_keys)
        self._held_bytes_max = held_bytes_max
        self._held: dict[int, list[tuple[pa.RecordBatch, pa.Array]]] = {}
        self._held_bytes = 0

    @property
    def are_many(self) -> bool:
        """Whether the buffer is full: take the changes, then flush the files."""
        return self._held_bytes >= self._held_bytes_max

    def hold(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Add changes of one bucket, in order; kinds are int8."""
        self._held.setdefault(bucket, []).append((rows, kinds))
        self._held_bytes += rows.nbytes

    def take(self) -> Iterator[tuple[int, CompleteChanges]]:
        """Yield the buffered rows by bucket, with their pre-images, and empty the buffer.

        The pre-images must reflect all changes taken earlier and no buffered ones. Raises as ``PreImages.of``.
        """
        held, self._held, self._held_bytes = self._held, {}, 0
        for bucket, changes in sorted(held.items()):
            rows, kinds = joined(changes)
            old = self._pre_images.of(pa.Table.from_batches([rows]))
            yield bucket, self._completed(bucket, rows, kinds, old)

    def finish(self) -> None:
        """End the task's changes; call it once, after the last ``take``."""

    def _completed(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, old: pa.Table) -> CompleteChanges:  # noqa: ARG002  for those that keep something by bucket
        return complete_changes(rows, kinds, old, self._primary_keys)
