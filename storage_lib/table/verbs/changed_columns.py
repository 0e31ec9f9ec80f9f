"""Refuse to write stored rows back if the table's columns were changed after they were read."""

from __future__ import annotations

from storage_lib.errors import CommitConflictError


def refuse_changed_columns(name: str, *, began: int, newest: int) -> None:
    """Raise ``CommitConflictError`` if the schema is ``newest`` and no longer ``began``.

    Call it after the stored rows' snapshot is known: the values of a column that was added since would be lost.
    """
    if newest != began:
        message = (
            f"table {name}: its schema was changed to version {newest} while this change began under version {began}. "
            "Nothing was committed; run it again"
        )
        raise CommitConflictError(message)
