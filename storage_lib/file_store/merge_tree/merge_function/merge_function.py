"""Merge functions: combine the versions of one key into one row, or none.

Merging is done at a flush, at a compaction and at a read, in any order that time brings. So a merge function has a
law to keep, and tests/file_store/merge_tree/test_merge_laws.py holds it to it: however the versions of a key are cut
into runs, and whichever neighbours are merged first, the last merge gives the same row. What a merge hands out is
therefore a version like any other until it is *final*, that is, until nothing older can be left.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.merge_tree.merge_function.versions import Versions

RETRACT_BIT = 1
"""UPDATE_BEFORE (1) and DELETE (3) are the odd codes of ``RowKind``."""


class MergeFunction(Protocol):
    """Merges versions of many keys at once; frozen, picklable, without I/O and without a loop over rows."""

    @property
    def order(self) -> SequenceOrder:
        """Which of two versions of a key is newer."""

    @property
    def keeps_newest(self) -> bool:
        """Whether a merge is nothing but the choice of the version with the highest sequence number.

        Then nobody calls ``merge``: readers and writers have a faster way for it.
        """

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """The table columns that a merge has to see for these to come out right, these included."""

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """Rows and kinds as a writer got them, as versions: what each row makes of a key that had none.

        May leave rows out. Raises ``InvalidInputError`` for a kind of change that this function can't merge.
        """

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:
        """One row per key at most, sorted by key, with the columns of ``versions``.

        ``final``: nothing older is left, so what only takes away has done its work and is dropped.
        """


def retracts(kinds: pa.Int8Array) -> npt.NDArray[np.bool_]:
    """Which rows take their key away."""
    return (kinds.to_numpy() & RETRACT_BIT).astype(np.bool_)


def without_retracts(rows: pa.RecordBatch, kinds: pa.Int8Array) -> pa.RecordBatch:
    """The rows that stand; a key whose newest version retracts has none."""
    gone = retracts(kinds)
    return rows.filter(pa.array(~gone)) if gone.any() else rows
