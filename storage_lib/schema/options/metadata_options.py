"""Columns that readers of external topics fill from the metadata of records, declared in a table's options.

    ordinal BIGINT METADATA FROM 'value.source.lsn'      column.ordinal.metadata = value.source.lsn
    offset  BIGINT METADATA                              column.offset.metadata = offset

They are stored like other columns. Other writers give them values, or leave them null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from storage_lib.errors import InvalidInputError

_COLUMN = "column."
_METADATA = ".metadata"
_DECLARED = re.compile(r"(?P<type>.*\S)\s+METADATA(\s+FROM\s+'(?P<name>[^']+)')?\s*", re.IGNORECASE | re.DOTALL)
_MEANT = re.compile(r"[^<]*\sMETADATA\b", re.IGNORECASE)
"""Fields of a ROW may have that name."""


def metadata_key(column: str) -> str:
    """Return the key of the option that declares a column's metadata."""
    return f"{_COLUMN}{column}{_METADATA}"


def column_of_key(key: str) -> str | None:
    """Return the column of such an option; None for any other."""
    is_one = key.startswith(_COLUMN) and key.endswith(_METADATA)
    return key[len(_COLUMN) : -len(_METADATA)] if is_one else None


def metadata_names(options: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the metadata that a table's options declare, by column."""
    return {column: name for key, name in options.items() if (column := column_of_key(key)) is not None}


def split_type(column: str, text: str) -> tuple[str, str | None]:
    """Return the type of ``BIGINT METADATA FROM 'value.source.lsn'``, and the metadata; None without METADATA.

    Without FROM, the metadata has the name of the column. Raises ``InvalidInputError`` for other words behind METADATA.
    """
    declared = _DECLARED.fullmatch(text)
    if declared is not None:
        return declared["type"], declared["name"] or column
    if _MEANT.match(text):
        message = f"column {column!r} is {text!r}; write a type and METADATA FROM '<metadata>', nothing behind it"
        raise InvalidInputError(message)
    return text, None
