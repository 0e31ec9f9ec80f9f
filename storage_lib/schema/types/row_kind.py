"""Row kinds: the four kinds of changes in a changelog, as Flink names them.

On the edge (Spark, Arrow in and out) a kind is a two-letter string in the reserved column ``_row_kind``;
inside the library and in data files it is an int8 (``_VALUE_KIND``, docs/format.md).
"""

from __future__ import annotations

from enum import IntEnum

ROW_KIND_COLUMN = "_row_kind"
RETRACT_BIT = 1
"""The codes of kinds that take a row away are odd."""


class RowKind(IntEnum):
    """One change of one row; the value is the code in data files."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def symbol(self) -> str:
        """The spelling on the edge: ``+I``, ``-U``, ``+U`` or ``-D``."""
        return ROW_KIND_SYMBOLS[self]

    @property
    def is_retract(self) -> bool:
        """Whether the row is taken away (``-U``, ``-D``) rather than put in."""
        return self in (RowKind.UPDATE_BEFORE, RowKind.DELETE)


ROW_KIND_SYMBOLS: tuple[str, ...] = ("+I", "-U", "+U", "-D")
"""Symbols in the order of their codes, so that ``ROW_KIND_SYMBOLS[code]`` is the spelling."""
