"""Changes of a task for a log with pre-images that the input must contain (``write.produce-update-before=input``).

Nothing completes these changes, so each must follow from the stored row, or the log would contradict the table
permanently. They are buffered, then checked with one look-up per bucket.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.table.changes.changelog_check import Contradiction, checked_stretch, unfinished_update
from storage_lib.table.changes.update_before import CompleteChanges, complete_changes
from storage_lib.table.write.pending_changes import PendingChanges
from storage_lib.table.write.pre_images import PreImages


class ContradictionError(InvalidInputError):
    """Changes do not follow from the stored rows, which for a repeated commit include its own rows."""


class CheckedChanges(PendingChanges):
    """As ``PendingChanges``, but requires complete changes; raises ``ContradictionError`` for others."""

    def __init__(self, *, table: str, pre_images: PreImages, primary_keys: Sequence[str], held_bytes_max: int) -> None:
        super().__init__(table=table, pre_images=pre_images, primary_keys=primary_keys, held_bytes_max=held_bytes_max)
        self._open_updates: dict[int, pa.Table] = {}

    def finish(self) -> None:
        """Refuse a ``-U`` without its ``+U``: a later commit could not match the two."""
        for _, rows in sorted(self._open_updates.items()):
            self._refuse(unfinished_update(rows, self._primary_keys))

    def _completed(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, old: pa.Table) -> CompleteChanges:
        opened = self._open_updates.pop(bucket, old.slice(0, 0))
        checked = checked_stretch(rows, kinds, old, opened, self._primary_keys)
        self._refuse(checked.contradiction)
        if checked.open_updates.num_rows:
            self._open_updates[bucket] = checked.open_updates
            rows, kinds = rows.filter(checked.is_closed), kinds.filter(checked.is_closed)
        # The same changes with the ``-U`` and ``+U`` of each update adjacent, as in the log.
        return complete_changes(rows, kinds, pa.concat_tables([old, opened]), self._primary_keys)

    def _refuse(self, found: Contradiction | None) -> None:
        if found is None:
            return
        stored = "no row" if found.stored is None else found.stored
        message = (
            f"table {self._table}: {found.kind} of key {found.key} contradicts what is stored: {found.reason}. "
            f"Stored: {stored}; came: {found.came}. Nothing was committed. With write.produce-update-before=input each "
            "change has to follow from the stored row, and an update is a -U and a +U in one commit; correct the "
            "input, or use write.produce-update-before=lookup, which takes the row before each change from the table"
        )
        raise ContradictionError(message)
