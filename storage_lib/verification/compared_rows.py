"""One side of a comparison: rows with columns of known kinds, which can be read repeatedly and always are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl
import pyarrow as pa

from storage_lib.verification.column_kind import ColumnKind
from storage_lib.verification.common_values import common_values


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Rows to read: those whose ``column`` is at least ``low`` and at most ``high``; None is unbounded.

    A side that can't apply the bounds returns more rows, which the reader drops.
    """

    column: str
    low: int | str | None
    high: int | str | None


class ComparedRows(Protocol):
    """Rows at one position, which no later change moves."""

    name: str
    """For messages; contains no secret."""
    position: str
    """For messages: "snapshot 5"."""
    kinds: Mapping[str, ColumnKind | None]
    """Kind of each column, in order; None for columns that can't be compared."""

    def batches(self, forms: Mapping[str, ColumnKind], bounds: KeyBounds | None) -> Iterator[pa.RecordBatch]:
        """Read the columns of ``forms``, in any order."""

    def close(self) -> None:
        """Release what is held for the reads."""


def common_frames(
    rows: ComparedRows, forms: Mapping[str, ColumnKind], bounds: KeyBounds | None
) -> Iterator[pl.DataFrame]:
    """Read columns in the forms in which they are compared."""
    for batch in rows.batches(forms, bounds):
        yield pl.DataFrame([common_values(batch.column(name), form, name, rows.name) for name, form in forms.items()])
