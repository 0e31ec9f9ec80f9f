"""Buffers rows in one writer per (partition, bucket) and returns commit messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.kind.table_kind import BucketWriter
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.merge_keys import Indices
from storage_lib.io.file_io import FileIO
from storage_lib.schema.options.event_time import EventTime

_FLUSHES_AT_ONCE = 4
_SIDE_BY_SIDE_BYTES_MIN = 8 * 1024 * 1024


class FileStoreWrite:
    """Writer for one commit and one thread at a time. Ends with ``prepare_commit`` or ``abort``.

    The total size of its memtables stays below ``memtable_bytes_max``, regardless of the number of buckets.
    """

    def __init__(
        self,
        *,
        file_io: FileIO,
        new_writer: Callable[[bytes, int], BucketWriter],
        abort_messages: Callable[[Sequence[CommitMessage]], None],
        bucket_count: int,
        memtable_bytes_max: int,
        event_time: EventTime | None = None,
    ) -> None:
        self._file_io = file_io
        self._new_writer = new_writer
        self._abort_messages = abort_messages
        self._bucket_count = bucket_count
        self._memtable_bytes_max = memtable_bytes_max
        self._event_time = event_time
        self._watermark: int | None = None
        self._writers: dict[tuple[bytes, int], BucketWriter] = {}
        self._memtable_bytes = 0
        self._prepared: tuple[CommitMessage, ...] = ()

    def write(
        self,
        partition: bytes,
        bucket: int,
        rows: pa.RecordBatch,
        kinds: pa.Int8Array,
        rows_selected: Indices | None = None,
    ) -> None:
        """Add rows of one bucket, all or the selected ones in the given order; a later row of a key wins.

        Raises ``InvalidInputError`` for a null in a NOT NULL column; no row is added then.
        """
        key = (partition, bucket)
        writer = self._writers.get(key)
        if writer is None:
            writer = self._writers[key] = self._new_writer(partition, bucket)
        before = writer.memtable_bytes
        writer.write(rows, kinds, rows_selected)
        self._memtable_bytes += writer.memtable_bytes - before
        self._note_event_time(rows, rows_selected)
        if self._memtable_bytes > self._memtable_bytes_max:
            self._flush_largest()

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Write all rows so far to durable files; return one message per bucket that received rows."""
        writers = list(self._writers.items())
        if len(writers) > 1 and self._memtable_bytes > _SIDE_BY_SIDE_BYTES_MIN:
            with ThreadPoolExecutor(_FLUSHES_AT_ONCE) as threads:
                increments = list(threads.map(_prepared, (writer for _, writer in writers)))
        else:
            increments = [_prepared(writer) for _, writer in writers]
        self._memtable_bytes = 0
        self._prepared += tuple(
            CommitMessage(
                partition=partition,
                bucket=bucket,
                bucket_count=self._bucket_count,
                increment=increment,
                watermark=self._watermark,
            )
            for ((partition, bucket), _), increment in zip(writers, increments, strict=True)
            if not increment.is_empty
        )
        self._file_io.sync([path for _, writer in writers for path in writer.take_unsynced()])
        return self._prepared

    def abort(self) -> None:
        """Delete every file of this write, even of returned messages: not after a commit of unknown outcome."""
        for writer in self._writers.values():
            writer.abort()
        self._writers.clear()
        prepared, self._prepared = self._prepared, ()
        self._abort_messages(prepared)

    def _note_event_time(self, rows: pa.RecordBatch, rows_selected: Indices | None) -> None:
        if self._event_time is None:
            return
        newest = self._event_time.watermark_of(rows if rows_selected is None else rows.take(pa.array(rows_selected)))
        if newest is not None:
            self._watermark = newest if self._watermark is None else max(self._watermark, newest)

    def _flush_largest(self) -> None:
        """Flush the largest memtables until half of the memory is free, which makes few, large files."""
        for writer in sorted(self._writers.values(), key=lambda each: each.memtable_bytes, reverse=True):
            if self._memtable_bytes <= self._memtable_bytes_max // 2:
                return
            before = writer.memtable_bytes
            writer.flush()
            self._memtable_bytes += writer.memtable_bytes - before


def _prepared(writer: BucketWriter) -> Increment:
    return writer.prepare_commit()
