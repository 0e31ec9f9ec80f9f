"""Merge functions for which one row does not always tell what several versions did."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.versions import Versions


@runtime_checkable
class LayeredMergeFunction(MergeFunction, Protocol):
    """To delete a row and to add to it later is not the same as to add to it: there are two things to hand on.

    A sorted run has one row per key. So a flush writes what is to be below into a file of its own, older than the
    other, and a compaction that meets rows which take back merges the whole bucket, where nothing has to be below.
    """

    def below(self, versions: Versions) -> pa.RecordBatch | None:
        """Rows to store below the result of a non-final ``merge``; sorted by key, at most one row per key.

        None: nothing, as nearly always. These rows take back, and are older than the merged rows of the same keys.
        """
