"""Operations of records that Debezium's ``ExtractNewRecordState`` has flattened to the row.

``__deleted`` marks the last row of a deleted key (``delete.tombstone.handling.mode=rewrite``), and ``__op`` names the
operation (``add.fields=op``). Without both, a record is treated as an update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.capture.written_changes import OPERATION_CODES, OPERATION_OF_CODE, Operation

if TYPE_CHECKING:
    from storage_lib.schema.encoding.varint_columns import Int64s

ADDED_PREFIX = "__"
"""Start of the names of keys that the transformation adds to the columns."""

FLATTENED_OTHERS = {"__op": pa.string(), "__deleted": pa.string()}
"""Keys that are not columns, with their types."""


def flattened_operations(others: Mapping[str, pa.Array]) -> Int64s:
    """Return the ``Operation`` of each record. Raises ``ValueError`` for unknown words."""
    codes, deleted = others["__op"], others["__deleted"]
    found = pc.index_in(codes, pa.array(OPERATION_CODES))
    unknown = pc.and_(found.is_null(), codes.is_valid())
    if pc.any(unknown, min_count=0).as_py():
        message = f"unknown __op {codes.filter(unknown)[0].as_py()!r}; expected c, u, d, r, t or m"
        raise ValueError(message)
    wrong = pc.invert(pc.fill_null(pc.is_in(deleted, pa.array(["true", "false"])), True))
    if pc.any(pc.and_(wrong, deleted.is_valid()), min_count=0).as_py():
        message = f"unknown __deleted {deleted.filter(wrong)[0].as_py()!r}; expected true or false"
        raise ValueError(message)
    places = pc.fill_null(found, 0).to_numpy(zero_copy_only=False)
    operations = np.where(codes.is_valid().to_numpy(zero_copy_only=False), OPERATION_OF_CODE[places], Operation.UPDATE)
    is_deleted = pc.fill_null(pc.equal(deleted, "true"), False).to_numpy(zero_copy_only=False)
    return np.where(is_deleted, np.int8(Operation.DELETE), operations).astype(np.int8)
