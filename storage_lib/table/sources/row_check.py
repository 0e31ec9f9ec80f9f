"""A user's check of the rows of a source, in addition to that of the table: records with other rows are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts

if TYPE_CHECKING:
    from storage_lib.schema.types.nested_arrays import Mask

RowCheck: TypeAlias = Callable[[pa.Table], Mapping[int, tuple[str | None, str]]]
"""Takes rows with the table's columns; returns by position those that do not pass: the column, if one, and why."""


def unmet(check: RowCheck | None, rows: pa.Table, kinds: pa.Array, wanted: Mask) -> dict[int, tuple[str | None, str]]:
    """Return the positions of new rows in ``wanted`` that do not pass, with the reasons.

    A row that is taken back, or deleted, is not checked: it may be one that a newer record corrects.

    Raises ``InvalidInputError`` if the check returns anything else.
    """
    if check is None:
        return {}
    places = np.flatnonzero(wanted & ~retracts(kinds))
    if not len(places):
        return {}
    found = check(rows.take(pa.array(places)))
    _refuse_wrong_answer(found, len(places))
    return {int(places[row]): problem for row, problem in found.items()}


def _refuse_wrong_answer(found: object, count: int) -> None:
    """Raise ``InvalidInputError`` unless a check has returned positions of its rows with pairs of texts.

    A position from the end, such as -1, would refuse another record than the one that is meant.
    """
    if not isinstance(found, Mapping):
        problem = f"a {type(found).__name__}"
    else:
        wrong = [each for each in found.items() if not _is_problem(*each, count)]
        if not wrong:
            return
        problem = f"{wrong[0][0]!r}: {wrong[0][1]!r}"
    message = (
        f"the check of rows (expect) returned {problem} for {count} rows; return a mapping whose keys are positions "
        "from 0 and whose values are pairs of the column, or None, and the reason. Nothing of this commit was written"
    )
    raise InvalidInputError(message)


def _is_problem(row: object, problem: object, count: int) -> bool:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < count:
        return False
    if not isinstance(problem, tuple | list) or len(problem) != len(("column", "reason")):
        return False
    column, reason = problem
    return (column is None or isinstance(column, str)) and isinstance(reason, str)
