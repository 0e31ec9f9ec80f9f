"""A task's changes on their way to a log that also tells what was there before (``log.changelog-mode=all``).

They are held back until there are many, and their old rows looked up at once, bucket by bucket: in the files of the
snapshot that the turn began upon, and in those that this task itself has written since. So what is in memory is bounded
by what is held, however many rows the task has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from storage_lib.errors import CommitConflictError, SnapshotExpiredError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.table.changes.update_before import CompleteChanges, complete_changes, joined
from storage_lib.table.read.point_lookup import PointLookup

HELD_BYTES_MAX = 256 << 20


class HeldChanges:
    """The changes that one task has not written to the log yet. One thread at a time."""

    def __init__(
        self,
        *,
        table: str,
        lookup: PointLookup,
        primary_keys: Sequence[str],
        base: Snapshot | None,
        held_bytes_max: int,
    ) -> None:
        self._table = table
        self._lookup = lookup
        self._primary_keys = tuple(primary_keys)
        self._base = base
        self._held_bytes_max = held_bytes_max
        self._held: dict[int, list[tuple[pa.RecordBatch, pa.Array]]] = {}
        self._held_bytes = 0

    @property
    def are_many(self) -> bool:
        """Whether they should be taken now, and what was written to the files be made readable."""
        return self._held_bytes >= self._held_bytes_max

    def hold(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Add changes of one bucket, in order; kinds are int8."""
        self._held.setdefault(bucket, []).append((rows, kinds))
        self._held_bytes += rows.nbytes

    def take(self, written: Sequence[CommitMessage]) -> Iterator[tuple[int, CompleteChanges]]:
        """What is held, by bucket, with the rows that were there before; nothing is held afterwards.

        ``written`` are the files with the rows taken before. Raises ``CommitConflictError`` if the base was expired
        meanwhile.
        """
        held, self._held, self._held_bytes = self._held, {}, 0
        added: dict[tuple[bytes, int], list[DataFileMeta]] = {}
        for each in written:
            added.setdefault((each.partition, each.bucket), []).extend(each.increment.new_files)
        for bucket, changes in sorted(held.items()):
            rows, kinds = joined(changes)
            keys = pa.Table.from_batches([rows]).select(self._primary_keys)
            try:
                old = self._lookup.rows_of(self._base, keys, added=added)
            except SnapshotExpiredError as error:
                message = (
                    f"table {self._table}: the snapshot upon which this write began was expired while the rows that "
                    f"it replaces were looked up ({error}). Nothing became visible; write again, and keep snapshots "
                    "for longer than a write takes (expire_snapshots(older_than_millis=...))"
                )
                raise CommitConflictError(message) from error
            yield bucket, self._completed(bucket, rows, kinds, old)

    def finish(self) -> None:
        """Called once, after the last ``take``."""

    def _completed(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, old: pa.Table) -> CompleteChanges:  # noqa: ARG002  for those that keep something by bucket
        return complete_changes(rows, kinds, old, self._primary_keys)
