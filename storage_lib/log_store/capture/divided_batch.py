"""Decode a batch of records of which some may be unreadable: each of those is found, and the others are decoded.

A topic that other programs write may hold a corrupt record, which would otherwise block every later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal, merged_changes
from storage_lib.log_store.codec.debezium_envelope import UNREADABLE
from storage_lib.log_store.codec.looks_like import hint

if TYPE_CHECKING:
    import pyarrow as pa

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
    columns: LogColumns,
    captured: Callable[[LogColumns], CapturedChanges],
    nothing: CapturedChanges,
    format_: str,
    broken: Callable[[pa.Array], Mapping[int, str]] | None = None,
) -> CapturedChanges:
    """Apply ``captured`` to all records; an unreadable one is refused. ``nothing`` is the result of no records.

    ``broken`` finds values that certainly can't be read, by index with the reason, faster than attempts to decode
    them. The reason of a refusal names the format that the record looks like, if that is not ``format_``.
    """
    found: Mapping[int, str] = {}
    if broken is not None and len(columns) > 1:
        try:
            return captured(columns)
        except UNREADABLE:
            found = broken(columns.values)
    parts = [(np.zeros(0, np.int64), nothing)]
    if found:
        reasons = {index: _reason(columns, index, reason, format_) for index, reason in found.items()}
        parts.append((np.arange(len(columns)), _refused(nothing, reasons)))
    places = np.delete(np.arange(len(columns)), list(found))
    rest = columns.without(np.array(list(found))) if found else columns
    for start, stop, changes, error in divided(len(rest), lambda a, b: captured(rest.slice(a, b))):
        read = changes if changes is not None else _refused(nothing, {0: _reason(rest, start, str(error), format_)})
        parts.append((places[start:stop], read))
    return merged_changes(parts if len(parts) == 1 else parts[1:])


def _reason(columns: LogColumns, index: int, reason: str, format_: str) -> str:
    like = hint(columns.values[index].as_py(), format_)
    return f"{reason}. {like}" if like else reason


def _refused(nothing: CapturedChanges, reasons: Mapping[int, str]) -> CapturedChanges:
    return CapturedChanges(
        rows=nothing.rows,
        kinds=nothing.kinds,
        record_indices=nothing.record_indices,
        refusals=tuple(
            Refusal(record_index=index, column=None, reason=reason, is_unreadable=True)
            for index, reason in reasons.items()
        ),
    )
