"""Versions of a key to merge if rows above level 0 are complete.

Tables with ``changelog-producer=lookup``, deletion vectors, ``merge-engine=first-row`` or ``force-lookup`` are
compacted with lookups: a row that leaves level 0 has been merged with the deeper versions of its key. So the
version on the lowest level above 0 includes the deeper ones, and merging them again would count them twice.
"""

from __future__ import annotations

import numpy as np

from storage_lib.file_store.merge_tree.merge_keys import Indices, MergeKeys


def counting_rows(keys: MergeKeys, levels: Indices) -> Indices | None:
    """Return the positions of the rows to merge, ascending; None: all rows.

    These are all rows of level 0, and for each key the one on the lowest level above. ``levels`` has each row's level.
    """
    upper = np.flatnonzero(levels > 0)
    if not len(upper) or bool(np.all(levels[upper] == levels[upper[0]])):
        return None
    deepest_first = upper[np.argsort(-levels[upper], kind="stable")]
    lowest = deepest_first[keys.take(deepest_first).newest(ordered=False)]
    return np.sort(np.concatenate([np.flatnonzero(levels == 0), lowest]))
