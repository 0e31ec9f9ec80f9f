"""A native read without some rows of each file: those that a deletion vector marks, or that newer rows replace.

The bits of all files are one array, a scalar subquery, and a condition tests the bit of each row: no join, so the
files are still read by columns, conditions of a query skip row groups, and Spark knows the size of the result.

    bit of a row  =  rows of the files before its file  +  its position in its file
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from storage_lib.spark.reading.file_relation import FILE_BASE, ROW_POSITION, LeftOutBits

if TYPE_CHECKING:
    from storage_lib.table.read.left_out_rows import LeftOutRows

ROWS_MAX = 256 * 1024 * 1024
"""Rows of the files of one read, whose bits are sent to every task."""


def can_leave_rows_out(extension: str, row_count: int, columns: Iterable[str]) -> bool:
    """Return whether rows can be left out of files with this extension and, together, this number of rows.

    ``columns``: those of the files and of the read. None may have a name that the condition needs; of a file that
    contains a column named like Spark's row position, Spark would return that column.
    """
    is_told = not {name.lower() for name in columns} & {FILE_BASE, ROW_POSITION}
    return extension == "parquet" and row_count <= ROWS_MAX and is_told


def left_out_bits(left_out: Sequence[LeftOutRows]) -> LeftOutBits:
    """Return the bits of the files of one read."""
    bases = np.cumsum([0, *(each.place_count for each in left_out)])[:-1]
    return LeftOutBits(b"".join(each.padded() for each in left_out), bases.tolist())
