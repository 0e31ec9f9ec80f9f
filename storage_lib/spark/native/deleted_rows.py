"""Rows that a deletion vector marks, removed from a native read by an anti join on file and position."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as sql

from storage_lib.spark.translation.predicate_column import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELETED_ROWS_MAX = 2_000_000
"""Deleted rows of one read: their positions are sent to every executor, 30 bytes or so each."""

_FILE = "__native_file_name"
_POSITION = "__native_row_index"
_RESERVED = (_FILE, _POSITION, "_metadata")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")


def can_leave_out(file_names: Sequence[str], columns: Iterable[str]) -> bool:
    """Return whether the file names are plain and distinct, and no column has a name that the join needs."""
    plain = all(_PLAIN_NAME.fullmatch(name) for name in file_names)
    return plain and len(set(file_names)) == len(file_names) and not {c.lower() for c in columns} & set(_RESERVED)


def without_deleted(df: DataFrame, deleted: Iterable[tuple[str, npt.NDArray[np.int64]]]) -> DataFrame:
    """Return the rows of a native relation that are at none of the positions; ``deleted`` is by file name."""
    names: list[pa.Array] = []
    positions: list[pa.Array] = []
    for name, rows in deleted:
        names.append(pa.repeat(pa.scalar(name, pa.string()), len(rows)))
        positions.append(pa.array(rows, pa.int64()))
    table = pa.table({_FILE: pa.chunked_array(names, pa.string()), _POSITION: pa.chunked_array(positions, pa.int64())})
    left_out = sql.broadcast(df.sparkSession.createDataFrame(table))
    placed = df.select(
        "*", sql.col("_metadata.file_name").alias(_FILE), sql.col("_metadata.row_index").alias(_POSITION)
    )
    return placed.join(left_out, [_FILE, _POSITION], "left_anti").select(*[quoted(name) for name in df.columns])
