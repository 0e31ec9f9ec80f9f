"""Merge functions: combine the versions of one key into one row, or none.

Flushes, compactions and reads merge versions, in any order. So a merge function has to obey a law, which
tests/file_store/merge_tree/test_merge_laws.py checks: however the versions of a key are divided
into runs, and whichever neighbours are merged first, the last merge gives the same row. Therefore the result of a
merge is a version like any other unless the merge is *final*, that is, unless nothing older can exist.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.merge_tree.merge_function.versions import Versions

RETRACT_BIT = 1
"""Bit set in UPDATE_BEFORE (1) and DELETE (3), the odd codes of ``RowKind``."""


class MergeFunction(Protocol):
    """Merges versions of many keys at once; frozen, picklable, without I/O and without a loop over rows."""

    @property
    def order(self) -> SequenceOrder:
        """Order of the versions of a key."""

    @property
    def keeps_newest(self) -> bool:
        """Whether a merge only chooses the version with the highest sequence number.

        Then ``merge`` is never called: readers and writers have a faster way.
        """

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return the table columns that a merge needs to compute these, including them."""

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """Convert input rows and kinds to versions: the row that each makes of a key without a row.

        May omit rows. Raises ``InvalidInputError`` for a kind of change that this function can't merge.
        """

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:
        """Return at most one row per key, sorted by key, with the columns of ``versions``.

        ``final``: nothing older exists, so rows that only retract are dropped.
        """


def retracts(kinds: pa.Int8Array) -> npt.NDArray[np.bool_]:
    """Return which rows retract."""
    return (kinds.to_numpy() & RETRACT_BIT).astype(np.bool_)


def without_retracts(rows: pa.RecordBatch, kinds: pa.Int8Array) -> pa.RecordBatch:
    """Return the rows that do not retract."""
    retracted = retracts(kinds)
    return rows.filter(pa.array(~retracted)) if retracted.any() else rows
