"""A user's check of the rows of a source, in addition to that of the table: records with other rows are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts

if TYPE_CHECKING:
    from storage_lib.schema.types.nested_arrays import Mask

RowCheck: TypeAlias = Callable[[pa.Table], Mapping[int, tuple[str | None, str]]]
"""Takes rows with the table's columns; returns by position those that do not pass: the column, if one, and why."""


def unmet(check: RowCheck | None, rows: pa.Table, kinds: pa.Array, wanted: Mask) -> dict[int, tuple[str | None, str]]:
    """Return the positions of new rows in ``wanted`` that do not pass, with the reasons.

    A row that is taken back, or deleted, is not checked: it may be one that a newer record corrects.
    """
    if check is None:
        return {}
    places = np.flatnonzero(wanted & ~retracts(kinds))
    if not len(places):
        return {}
    return {int(places[row]): problem for row, problem in check(rows.take(pa.array(places))).items()}
