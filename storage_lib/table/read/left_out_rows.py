"""Rows of files that are not rows of the table, because a newer version of their key replaces them, as bits.

    tasks     merge the keys of some files, or of a range of keys       ─▶ which rows stand, batch by batch
    driver    puts the batches of all tasks together                    ─▶ one bit for each row of a file

An engine that reads the files by itself leaves these rows out. The bits are right as long as the files exist: as the
files of a bucket are a function of its snapshot, so are the bits of all files of a bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.merge_tree.standing.standing_rows import StandingRows

STANDING_SCHEMA = pa.schema(
    [
        pa.field("file_name", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("row_count", pa.int64(), nullable=False),
        pa.field("bits", pa.binary(), nullable=False),
    ]
)
"""Columns in which tasks send ``StandingRows``."""


@dataclass(frozen=True, slots=True)
class LeftOutRows:
    """Bits of the rows of one file, the first row in the lowest bit of the first byte; 1: left out."""

    bits: npt.NDArray[np.uint8]

    @classmethod
    def at(cls, positions: npt.NDArray[np.int64], row_count: int) -> LeftOutRows:
        """Return the rows at some positions of a file with ``row_count`` rows."""
        is_left_out = np.zeros(row_count, dtype=np.bool_)
        is_left_out[positions] = True
        return cls(np.packbits(is_left_out, bitorder="little"))

    @property
    def place_count(self) -> int:
        """Number of rows that ``padded`` has room for."""
        return 8 * (len(self.bits) + -len(self.bits) % 8)

    def padded(self) -> bytes:
        """Return the bits as whole words of 64 rows."""
        return self.bits.tobytes() + bytes(-len(self.bits) % 8)


def encoded(rows: Iterable[StandingRows]) -> pa.RecordBatch:
    """Return batches of rows as they are sent."""
    found = list(rows)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([each.file_name for each in found], pa.string()),
            pa.array([each.start for each in found], pa.int64()),
            pa.array([len(each.stands) for each in found], pa.int64()),
            pa.array([np.packbits(each.stands, bitorder="little").tobytes() for each in found], pa.binary()),
        ],
        schema=STANDING_SCHEMA,
    )


def left_out_rows(sent: pa.Table, row_counts: Mapping[str, int]) -> dict[str, LeftOutRows]:
    """Return the rows of each file that no task found standing.

    Raises ``CorruptFileError`` if the tasks did not read all rows: their files differ from the plan.
    """
    places: dict[str, list[int]] = {name: [] for name in row_counts}
    for place, name in enumerate(sent.column("file_name").to_pylist()):
        places[name].append(place)
    return {name: _of_file(name, sent.take(places[name]), row_counts[name]) for name in row_counts}


def _of_file(name: str, sent: pa.Table, row_count: int) -> LeftOutRows:
    stands = np.zeros(row_count, dtype=np.bool_)
    is_read = np.zeros(row_count, dtype=np.bool_)
    columns = [sent.column(each).to_pylist() for each in ("start", "row_count", "bits")]
    for start, count, bits in zip(*columns, strict=True):
        found = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=count, bitorder="little").view(np.bool_)
        stands[start : start + count] |= found
        is_read[start : start + count] = True
    if not is_read.all():
        message = f"{name}: {row_count - int(is_read.sum())} of {row_count} rows were not read by the merge of keys"
        raise CorruptFileError(message)
    return LeftOutRows(np.packbits(~stands, bitorder="little"))
