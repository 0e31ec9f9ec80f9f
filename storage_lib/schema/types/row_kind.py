"""Row kinds: the four kinds of changes in a changelog, with Flink's names.

At the API (Spark, Arrow input and output) a kind is a two-character string in the reserved column ``_row_kind``;
inside the library and in data files it is an int8 (``_VALUE_KIND``, docs/format.md).
"""

from __future__ import annotations

from enum import IntEnum

ROW_KIND_COLUMN = "_row_kind"
RETRACT_BIT = 1
"""Bit that is set in the codes of kinds that retract a row."""


class RowKind(IntEnum):
    """Kind of a change to a row; the value is the code in data files."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def symbol(self) -> str:
        """String at the API: ``+I``, ``-U``, ``+U`` or ``-D``."""
        return ROW_KIND_SYMBOLS[self]

    @property
    def is_retract(self) -> bool:
        """Whether the change retracts the row (``-U``, ``-D``) rather than adds it."""
        return self in (RowKind.UPDATE_BEFORE, RowKind.DELETE)


ROW_KIND_SYMBOLS: tuple[str, ...] = ("+I", "-U", "+U", "-D")
"""Symbols in the order of the codes: ``ROW_KIND_SYMBOLS[code]`` is the symbol of a code."""
