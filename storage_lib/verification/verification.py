"""Result of a comparison: what a table and its source have in common, and which keys differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DifferenceKind(StrEnum):
    """How a row differs, seen from the table."""

    MISSING = "missing"
    """The source has it, the table lacks it."""
    EXTRA = "extra"
    """The table has it, the source lacks it."""
    DIFFERENT = "different"
    """Both have its key, with other values."""
    REPEATED = "repeated"
    """A side has its key more than once, and the rows of the key are not the same on both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """One key that differs; of a table without key, one row.

    ``columns`` are the columns whose values differ, with the values of both sides (``different`` only).
    ``table_count`` and ``source_count``: how often the sides have the key, or the row.
    """

    kind: DifferenceKind
    key: Mapping[str, Any]
    columns: tuple[str, ...] = ()
    table_values: Mapping[str, Any] | None = None
    source_values: Mapping[str, Any] | None = None
    table_count: int
    source_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Result of ``verify``: exact numbers of rows, and of each kind of difference the first ones by name.

    ``missing``, ``extra``, ``different`` and ``repeated`` count keys; of a table without key, ``missing`` and ``extra``
    count rows. ``columns`` counts, for each column, the keys in which it differs. ``ranges`` is the number of ranges of
    the key that were compared.
    """

    table: str
    table_position: str
    source: str
    source_position: str
    key: tuple[str, ...]
    compared: Mapping[str, str]
    table_rows: int
    source_rows: int
    missing: int
    extra: int
    different: int
    repeated: int
    columns: Mapping[str, int]
    ranges: int
    differences: tuple[RowDifference, ...]

    @property
    def is_equal(self) -> bool:
        """Whether both sides have the same rows."""
        return not (self.missing or self.extra or self.different or self.repeated)
