"""All versions of some keys, as input of a merge function.

row     0    1    2    3    4    5
key     a    a    a    b    c    c        rows are sorted by key, and versions of one key from oldest to newest
starts  ^              ^    ^             [0, 3, 4]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.key_value import VALUE_KIND


@dataclass(frozen=True, kw_only=True)
class Versions:
    """Rows of a KV batch, or some columns of one; ``starts`` (ascending, the first is 0) has one entry per key.

    A batch without ``_VALUE_KIND`` has no retractions. There is at least one row.
    """

    rows: pa.RecordBatch
    starts: npt.NDArray[np.int64]

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """Position after the last, the newest, version of each key."""
        return np.append(self.starts[1:], self.rows.num_rows)

    @cached_property
    def group_of_row(self) -> npt.NDArray[np.int64]:
        """Index of each row's key, from 0."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    @cached_property
    def retracts(self) -> npt.NDArray[np.bool_] | None:
        """Mask of rows that retract; None if there are none."""
        index = self.rows.schema.get_field_index(VALUE_KIND)
        if index < 0:
            return None
        found = (self.rows.column(index).to_numpy() & 1).astype(np.bool_)
        return found if found.any() else None
