"""Which rows of overlapping files are the table's rows, from the keys (and what orders their versions) alone.

A merge of the columns ``key, place`` instead of whole rows: the places that it yields are those of the rows that stand.
An engine that reads the files by itself then leaves out all others, however many columns it reads.

    place of a row = number of rows that were read before it, of all files
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.key_value import KEY_PREFIX, VALUE_KIND, KeyValueSchema
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_tree_reader import read_merged
from storage_lib.schema.filter.predicate import Predicate

_PLACE = KEY_PREFIX
"""A name that no column has: it begins as those of stored keys, and ends there."""
_PLACE_FIELD = pa.field(_PLACE, pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRows:
    """Consecutive rows of a file, the first at position ``start``, and for each whether it is a row of the table."""

    file_name: str
    start: int
    stands: npt.NDArray[np.bool_]


def standing_rows(
    files: Sequence[DataFileMeta],
    *,
    reader: DataFileReader,
    key_value: KeyValueSchema,
    merge_function: MergeFunction = DEDUPLICATE,
    lowest_counts: bool = False,
    key_range: KeyRange | None = None,
) -> Iterator[StandingRows]:
    """Yield the rows of the files that a merge of the versions of each key reads.

    REQUIRES that the merge function chooses one of the versions: it is the table's row, or its deletion. Rows in
    deletion vectors do not stand. With ``key_range``, rows with other keys do not stand, and those in row groups
    without such keys may be omitted. Holds one to three bytes for each row that is read. Raises as ``read_merged``.
    """
    placed = _PlacedReader(reader)
    stands = np.zeros(0, dtype=np.bool_)
    for batch in read_merged(
        files,
        reader=placed,
        key_value=_PlacedSchema(schema=key_value.schema),
        merge_function=merge_function,
        columns=[_PLACE],
        lowest_counts=lowest_counts,
        key_range=key_range,
    ):
        if len(stands) < placed.row_count:
            stands = _longer(stands, max(2 * len(stands), placed.row_count))
        stands[batch.column(0).to_numpy()] = True
    stands = _longer(stands, placed.row_count)
    first = 0
    for file_name, start, count in placed.batches:
        yield StandingRows(file_name=file_name, start=start, stands=stands[first : first + count])
        first += count


def _longer(stands: npt.NDArray[np.bool_], length: int) -> npt.NDArray[np.bool_]:
    return np.concatenate([stands, np.zeros(max(0, length - len(stands)), dtype=np.bool_)])


@dataclass(frozen=True, kw_only=True)
class _PlacedSchema(KeyValueSchema):
    def _kv_arrow_schema(self) -> pa.Schema:
        return super()._kv_arrow_schema().append(_PLACE_FIELD)


class _PlacedReader:
    """The part of ``DataFileReader`` that a merge uses, with the places of the rows as one more column."""

    def __init__(self, reader: DataFileReader) -> None:
        self._reader = reader
        self.batches: list[tuple[str, int, int]] = []
        """File name, position of the first row, and number of rows."""
        self.row_count = 0
        """Number of rows that have been read, which is above all places so far."""

    def read(
        self,
        file: DataFileMeta,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        key_range: KeyRange | None = None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        assert predicate is None  # noqa: S101  a condition may leave out rows, and their positions would be unknown
        deleted = self._reader.deleted_rows(file)
        # A file that overlaps with no other is asked for the places only, and a batch without columns has no rows.
        others = [name for name in columns if name != _PLACE] or [VALUE_KIND]
        for start, batch in self._reader.read_placed(file, others, key_range=key_range, batch_rows=batch_rows):
            self.batches.append((file.file_name, start, batch.num_rows))
            places = pa.array(np.arange(self.row_count, self.row_count + batch.num_rows))
            self.row_count += batch.num_rows
            by_name = dict(zip(others, batch.columns, strict=True)) | {_PLACE: places}
            schema = pa.schema([*batch.schema, _PLACE_FIELD])
            placed = pa.RecordBatch.from_arrays(
                [by_name[name] for name in columns], schema=pa.schema([schema.field(name) for name in columns])
            )
            if len(deleted):
                placed = placed.filter(pa.array(~np.isin(np.arange(start, start + batch.num_rows), deleted)))
            if placed.num_rows:
                yield placed
