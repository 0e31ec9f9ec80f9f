"""Groups the versions of each key, oldest first, and merges them with a merge function."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.layered import LayeredMergeFunction
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.file_store.merge_tree.merge_keys import Indices, MergeKeys


def merge_versions(
    rows: pa.RecordBatch, keys: MergeKeys, merge_function: MergeFunction, *, final: bool
) -> pa.RecordBatch:
    """Return the merged rows, sorted by key. ``rows`` (with any KV columns) and their ``keys`` come in any order.

    Of versions that are equally old by the function's order, the later row is newer.
    """
    versions = _gathered(rows, keys, merge_function)
    return rows if versions is None else merge_function.merge(versions, final=final)


def merge_in_layers(
    rows: pa.RecordBatch, keys: MergeKeys, merge_function: MergeFunction, *, final: bool
) -> list[pa.RecordBatch]:
    """Return the rows that have to be below the merged ones, if any, and the merged rows; no empty batches."""
    versions = _gathered(rows, keys, merge_function)
    if versions is None:
        return []
    layers = [merge_function.merge(versions, final=final)]
    if not final and isinstance(merge_function, LayeredMergeFunction):
        below = merge_function.below(versions)
        layers = layers if below is None else [below, *layers]
    return [layer for layer in layers if layer.num_rows]


def gathered_versions(rows: pa.RecordBatch, keys: MergeKeys, merge_function: MergeFunction) -> tuple[Versions, Indices]:
    """Return at least one row as versions, and the position in ``rows`` of each of their rows."""
    by_age = merge_function.order.oldest_first(rows)
    order, starts = (keys if by_age is None else keys.take(by_age)).grouped()
    if by_age is not None:
        order = by_age[order]
    if not bool(np.all(order[1:] > order[:-1])):
        rows = rows.take(pa.array(order))
    return Versions(rows=rows, starts=starts), order


def _gathered(rows: pa.RecordBatch, keys: MergeKeys, merge_function: MergeFunction) -> Versions | None:
    return None if rows.num_rows == 0 else gathered_versions(rows, keys, merge_function)[0]
