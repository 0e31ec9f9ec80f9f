"""Operations of a batch of records, with the rows before and after each, in any encoding."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.metadata.record_metadata import RecordMetadata

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_changes import Refusal, SourceColumns
    from storage_lib.log_store.capture.row_images import RowImages
    from storage_lib.schema.types.nested_arrays import Mask


class Operation(IntEnum):
    """What a record says of its row."""

    INSERT = 0
    """A new row, or one that a snapshot of the database read."""
    UPDATE = 1
    DELETE = 2
    TRUNCATE = 3
    """All rows of the source were deleted."""
    MESSAGE = 4
    """Nothing about a row, such as Debezium's logical decoding messages."""
    TOMBSTONE = 5
    """A record without a value: its key has no row."""


OPERATION_CODES = ("c", "u", "d", "t", "m", "r")
"""Debezium's letters of operations."""

OPERATION_OF_CODE = np.array(
    [
        Operation.INSERT,
        Operation.UPDATE,
        Operation.DELETE,
        Operation.TRUNCATE,
        Operation.MESSAGE,
        Operation.INSERT,
    ],
    np.int8,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenChanges:
    """Records of a batch: ``operations`` (int8), the rows on both sides, and what the records' keys tell.

    ``keys`` has the columns of the table's primary key. ``holds_whole_before`` tells for each record whether its row
    before the change, if it has one, may be trusted in all columns rather than only in those of its key.
    ``leaves_out_nulls`` is that of ``CapturedChanges``.
    """

    operations: np.ndarray
    before: RowImages
    after: RowImages
    keys: RowImages
    holds_whole_before: Mask
    schemas: tuple[SourceColumns, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    metadata: RecordMetadata = field(default_factory=RecordMetadata)
    leaves_out_nulls: bool = False


def operations_of(codes: pa.Array) -> np.ndarray:
    """Return the ``Operation`` (int8) of each letter. Raises ``ValueError`` for an unknown one."""
    found = pc.index_in(codes, pa.array(OPERATION_CODES))
    if found.null_count:
        first = codes[pc.index(found.is_valid(), pa.scalar(False)).as_py()].as_py()
        message = f"unknown op {first!r}; expected c, u, d, r, t or m"
        raise ValueError(message)
    operations: np.ndarray = OPERATION_OF_CODE[found.to_numpy(zero_copy_only=False)]
    return operations
