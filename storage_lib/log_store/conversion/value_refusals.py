"""Rows of a column whose values a table can't hold, each with a reason that names column, value and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from storage_lib.schema.types.nested_arrays import Mask

_DISTINCT_MAX = 32
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows, as a mask of the column, that are refused for one reason."""

    mask: Mask
    reason: str


@dataclass(frozen=True, slots=True)
class Converted:
    """Column of the table's type. A refused row is null in ``array`` and in the mask of a refusal."""

    array: pa.Array
    refusals: tuple[Refused, ...] = ()


def refused(values: pa.Array, mask: Mask, name: str, why: str) -> tuple[Refused, ...]:
    """Return refusals of the masked rows, one per distinct value; after many of those, one for all other rows.

    ``why`` continues a sentence that begins with the column and the value.
    """
    rows = np.flatnonzero(mask)
    if not len(rows):
        return ()
    groups: dict[str, list[int]] = {}
    others: list[int] = []
    for row, value in zip(rows.tolist(), values.take(pa.array(rows)).to_pylist(), strict=True):
        shown = repr(value)[:_SHOWN_CHARACTERS]
        is_shown = shown in groups or len(groups) < _DISTINCT_MAX
        (groups.setdefault(shown, []) if is_shown else others).append(row)
    if others:
        groups["a value"] = others
    return tuple(
        Refused(_mask(len(mask), np.array(rows)), f"column {name!r}: {shown} {why}") for shown, rows in groups.items()
    )


def without(array: pa.Array, mask: Mask) -> pa.Array:
    """Return the array with nulls in the masked rows."""
    if not mask.any():
        return array
    return array.take(pa.array(np.arange(len(array)), mask=mask))


def in_rows(refusals: Iterable[Refused], offsets: np.ndarray) -> tuple[Refused, ...]:
    """Convert masks of elements to masks of the rows that hold them; row ``i`` begins at ``offsets[i]``."""
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return tuple(replace(each, mask=_mask(len(offsets) - 1, rows[each.mask])) for each in refusals)


def in_places(refusals: Iterable[Refused], rows: np.ndarray, count: int) -> list[Refused]:
    """Convert masks of the taken ``rows`` to masks of the column of ``count`` rows that they were taken from."""
    return [replace(each, mask=_mask(count, rows[each.mask])) for each in refusals]


def valid(array: pa.Array) -> Mask:
    """Return the mask of the values that are not null."""
    mask: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _mask(count: int, rows: np.ndarray) -> Mask:
    mask = np.zeros(count, bool)
    mask[rows] = True
    return mask
