"""Merge functions that may need two rows per key to represent several versions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.versions import Versions


@runtime_checkable
class LayeredMergeFunction(MergeFunction, Protocol):
    """Function whose merge may need a second, older row: a deletion followed by an addition differs from an addition.

    A sorted run has one row per key. So a flush writes the older rows to a separate, older file, and a compaction of
    files with retract rows merges the whole bucket, where no older row is needed.
    """

    def below(self, versions: Versions) -> pa.RecordBatch | None:
        """Return the rows to store below the result of a non-final ``merge``; sorted, at most one row per key.

        None, as in most cases: no such rows. They are retract rows, and older than the merged rows of the same keys.
        """
