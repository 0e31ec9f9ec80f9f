"""Which versions of a key count where rows above level 0 are complete.

Tables with ``changelog-producer=lookup``, deletion vectors, ``merge-engine=first-row`` or ``force-lookup`` are
compacted by looking up: a row that leaves level 0 has been merged with what deeper levels hold of its key. So the
version on the lowest level above 0 says all that the deeper ones said, and to merge them again would count them twice.
"""

from __future__ import annotations

import numpy as np

from storage_lib.file_store.merge_tree.merge_keys import Indices, MergeKeys


def counting_rows(keys: MergeKeys, levels: Indices) -> Indices | None:
    """The rows that count, ascending: all of level 0, and of each key that on the lowest level above. None: all rows.

    ``levels`` has the level of each row.
    """
    upper = np.flatnonzero(levels > 0)
    if not len(upper) or bool(np.all(levels[upper] == levels[upper[0]])):
        return None
    deepest_first = upper[np.argsort(-levels[upper], kind="stable")]
    lowest = deepest_first[keys.take(deepest_first).newest(ordered=False)]
    return np.sort(np.concatenate([np.flatnonzero(levels == 0), lowest]))
