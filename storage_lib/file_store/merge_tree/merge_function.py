"""What the versions of one key become: here, the newest one.

Deduplicate needs no look at the rows: the merge (sort_merge.py) keeps the last version of each key, and this file
says which of the kept ones are rows at all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

RETRACT_BIT = 1
"""UPDATE_BEFORE (1) and DELETE (3) are the odd codes of ``RowKind``."""


def retracts(kinds: pa.Int8Array) -> npt.NDArray[np.bool_]:
    """Which rows take their key away."""
    return (kinds.to_numpy() & RETRACT_BIT).astype(np.bool_)


def without_retracts(rows: pa.RecordBatch, kinds: pa.Int8Array) -> pa.RecordBatch:
    """The rows that stand; a key whose newest version retracts has none."""
    gone = retracts(kinds)
    return rows.filter(pa.array(~gone)) if gone.any() else rows
