"""Decode a batch of records of which some may be unreadable: each of those is found, and the others are decoded.

A topic that other programs write may hold a corrupt record, which would otherwise block every later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal, merged_changes
from storage_lib.log_store.codec.debezium_envelope import UNREADABLE
from storage_lib.log_store.codec.looks_like import hint

if TYPE_CHECKING:
    from storage_lib.log_store.codec.log_columns import LogColumns

_Decoded = TypeVar("_Decoded")


def divided(
    count: int, decoded: Callable[[int, int], _Decoded]
) -> Iterator[tuple[int, int, _Decoded | None, Exception | None]]:
    """Yield ranges of records with what ``decoded(start, stop)`` returns, or a single record with its error.

    ``decoded`` raises one of ``UNREADABLE`` if it can't read a record. After a failure, steps are halved and
    then doubled again: unreadable records come in runs, and each failed step costs a decode of the whole step.
    """
    start, step = 0, count
    while start < count:
        stop = min(start + step, count)
        try:
            found = decoded(start, stop)
        except UNREADABLE as error:
            if stop - start > 1:
                step = (stop - start) // 2
                continue
            yield start, stop, None, error
            step = 1
        else:
            yield start, stop, found, None
            step *= 2
        start = stop


def captured_but_unreadable(
    columns: LogColumns, captured: Callable[[LogColumns], CapturedChanges], nothing: CapturedChanges, format_: str
) -> CapturedChanges:
    """Apply ``captured`` to all records; an unreadable one is refused. ``nothing`` is the result of no records.

    The reason names the format that the record looks like, if that is not ``format_``.
    """
    parts = [(np.zeros(0, np.int64), nothing)]
    for start, stop, changes, error in divided(len(columns), lambda a, b: captured(columns.slice(a, b))):
        like = "" if error is None else hint(columns.values[start].as_py(), format_)
        refused = _refused(nothing, f"{error}. {like}" if like else str(error))
        parts.append((np.arange(start, stop), refused if changes is None else changes))
    return merged_changes(parts if len(parts) == 1 else parts[1:])


def _refused(nothing: CapturedChanges, reason: str) -> CapturedChanges:
    return CapturedChanges(
        rows=nothing.rows,
        kinds=nothing.kinds,
        record_indices=nothing.record_indices,
        refusals=(Refusal(record_index=0, column=None, reason=reason, is_unreadable=True),),
    )
