"""Converts changes of a query's result to changes of a table that stores the result by another key.

Rows of one key of the table may come from several rows of the source, whose changes have no order among each other. So
they are not applied one after another: within one commit they are summed row by row, and the sums are compared with the
stored rows. A row is deleted only if it equals the stored one, and inserted only if no other row of the key remains:
then the table equals the result, or the commit is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.row_kind import RETRACT_BIT
from storage_lib.table.changes.comparable_frame import column_name, comparable_frame
from storage_lib.table.changes.net_change import net_change
from storage_lib.table.changes.update_before import joined, one_batch

BYTES_IN_MEMORY = 128 << 20
_PARTS = 64
_INDEX, _WEIGHT, _PART = "index", "weight", "part"
Changes = tuple[pa.RecordBatch, pa.Array]


class SharedKeyError(InvalidInputError):
    """Two rows of a query's result have the same key in the table; nothing of the commit was written."""


class AnswerRows:
    """Computes the changes for one task's part of a result, which contains all rows of its keys.

    ``find`` looks up the stored rows of keys. Rows beyond the memory limit spill to files, partitioned by key.
    """

    def __init__(
        self,
        *,
        table: str,
        primary_keys: Sequence[str],
        find: Callable[[pa.Table], pa.Table],
        bytes_in_memory: int = BYTES_IN_MEMORY,
    ) -> None:
        self._table = table
        self._keys = tuple(primary_keys)
        self._find = find
        self._bytes_in_memory = bytes_in_memory

    def changes(self, rows: Iterable[Changes]) -> Iterator[Changes]:
        """Convert rows with kinds (int8) to changes of the table, old rows before new ones.

        Only the sign of a kind matters. Raises ``SharedKeyError`` with the key if two rows would share it.
        """
        held: list[Changes] = []
        held_bytes = 0
        with ExitStack() as until_read:
            parts: _Parts | None = None
            for each in rows:
                held.append(each)
                held_bytes += each[0].nbytes
                if held_bytes < self._bytes_in_memory:
                    continue
                if parts is None:
                    parts = _Parts(Path(until_read.enter_context(TemporaryDirectory(prefix="dynamic-table-answer-"))))
                    until_read.callback(parts.close)
                parts.add(*joined(held), self._keys)
                held, held_bytes = [], 0
            if parts is None:
                yield from self._net(*joined(held)) if held else ()
                return
            if held:
                parts.add(*joined(held), self._keys)
            for part in parts.read():
                yield from self._net(*part)

    def _net(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[Changes]:
        table = pa.Table.from_batches([rows])
        frame = comparable_frame(table)
        names = frame.columns
        key = [column_name(rows.schema.get_field_index(name)) for name in self._keys]
        weights = 1 - 2 * (kinds.to_numpy(zero_copy_only=False) & RETRACT_BIT).astype(np.int64)
        summed = (
            frame.with_row_index(_INDEX)
            .with_columns(pl.Series(_WEIGHT, weights))
            .group_by(names, maintain_order=True)
            .agg(pl.col(_INDEX).first(), pl.col(_WEIGHT).sum())
            .filter(pl.col(_WEIGHT) != 0)
        )
        if summed.is_empty():
            return
        added = summed.filter(pl.col(_WEIGHT) > 0)
        twice = added.filter((pl.col(_WEIGHT) > 1) | pl.struct(key).is_duplicated())
        if not twice.is_empty():
            raise self._shared(table, twice[_INDEX][0], "the query gives two rows for it")
        stored = self._find(table.take(summed[_INDEX].to_arrow()).select(list(self._keys)))
        there = comparable_frame(stored).with_row_index("stored")
        taken = there.join(summed.filter(pl.col(_WEIGHT) < 0), on=names, how="semi", nulls_equal=True)
        left = there.join(taken.select("stored"), on="stored", how="anti")
        shared = added.join(left, on=key, how="semi")
        if not shared.is_empty():
            raise self._shared(table, shared[_INDEX][0], "the table holds another row for it, which the query left")
        old = stored.take(taken["stored"].to_arrow())
        new = table.take(added[_INDEX].to_arrow())
        yield from net_change(old, new, self._keys, with_update_before=True)

    def _shared(self, rows: pa.Table, place: int, why: str) -> SharedKeyError:
        row = rows.slice(place, 1).select(list(self._keys)).to_pylist()[0]
        message = (
            f"table {self._table}: two rows of the query share the key {row}: {why}. Nothing of this commit was "
            "written. Choose a key for the table that tells the rows of the query apart, such as one with the source's "
            "key in it, or write into a table without a primary key; a stream that starts again needs an empty table"
        )
        return SharedKeyError(message)


class _Parts:
    """Rows spilled to files, partitioned by key."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}
        self._open = ExitStack()

    def add(self, rows: pa.RecordBatch, kinds: pa.Array, keys: Sequence[str]) -> None:
        frame = comparable_frame(pa.Table.from_batches([rows]).select(list(keys)))
        of_row = (frame.hash_rows(seed=0) % _PARTS).to_numpy()
        whole = rows.append_column(_KINDS, kinds)
        for part in np.unique(of_row).tolist():
            if part not in self._writers:
                sink = self._open.enter_context(pa.OSFile(str(self._path(part)), "wb"))
                self._writers[part] = pa.ipc.new_stream(sink, whole.schema)
            self._writers[part].write_batch(whole.filter(pa.array(of_row == part)))

    def read(self) -> Iterator[Changes]:
        parts = sorted(self._writers)
        self.close()
        for part in parts:
            with pa.memory_map(str(self._path(part))) as source:
                whole = one_batch(pa.ipc.open_stream(source).read_all())
                yield whole.drop_columns([_KINDS]), whole.column(_KINDS)

    def close(self) -> None:
        while self._writers:
            self._writers.popitem()[1].close()
        self._open.close()

    def _path(self, part: int) -> Path:
        return self._directory / f"part-{part}.arrow"


_KINDS = "\0kinds"
