"""Brings the versions of each key together, oldest first, and has a merge function make one row of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.file_store.merge_tree.merge_keys import MergeKeys


def merge_versions(
    rows: pa.RecordBatch, keys: MergeKeys, merge_function: MergeFunction, *, final: bool
) -> pa.RecordBatch:
    """The merged rows, sorted by key. ``rows`` (a KV batch or columns of one) and their ``keys`` come in any order.

    Of versions that the function's order takes for equally old, the one that stands later is newer.
    """
    if rows.num_rows == 0:
        return rows
    by_age = merge_function.order.oldest_first(rows)
    order, starts = (keys if by_age is None else keys.take(by_age)).grouped()
    if by_age is not None:
        order = by_age[order]
    if not bool(np.all(order[1:] > order[:-1])):
        rows = rows.take(pa.array(order))
    return merge_function.merge(Versions(rows=rows, starts=starts), final=final)
