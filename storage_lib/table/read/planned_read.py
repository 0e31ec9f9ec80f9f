"""The splits of one read, read one after another or several in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from storage_lib.file_store.split import Split
from storage_lib.progress.operation import operation
from storage_lib.progress.side_by_side import run_side_by_side
from storage_lib.progress.usable_cores import usable_cores

_THREADS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRead:
    """A planned read. ``read_split`` yields batches of ``schema`` and may be called from several threads."""

    table: str
    schema: pa.Schema
    splits: Sequence[Split]
    read_split: Callable[[Split], Iterator[pa.RecordBatch]]

    def stream(self) -> pa.RecordBatchReader:
        """Read one split at a time, with a few batches in memory."""
        batches = (batch for split in self.splits for batch in self.read_split(split))
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def to_table(self) -> pa.Table:
        """Read several splits in parallel: decoding and merging release the interpreter's lock."""
        if len(self.splits) <= 1:
            return self.stream().read_all()
        threads_max = min(_THREADS_MAX, len(self.splits), usable_cores())
        total = sum(len(split.files) for split in self.splits)
        with operation("read", self.table, total=total, unit="files") as files:
            parts = run_side_by_side(
                self._batches_of,
                self.splits,
                threads_max=threads_max,
                done=lambda split: files.advance(len(split.files)),
            )
        return pa.Table.from_batches([batch for part in parts for batch in part], schema=self.schema)

    def _batches_of(self, split: Split) -> list[pa.RecordBatch]:
        return list(self.read_split(split))
