"""Refuse a change of stored rows if others have changed the table's columns in a way that gives it another meaning."""

from __future__ import annotations

from storage_lib.errors import CommitConflictError, InvalidInputError
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.nested_types import ids_by_path


def refuse_reused_names(name: str, *, opened: TableSchema, newest: TableSchema) -> None:
    """Raise ``InvalidInputError`` if a column's name in the schema ``opened`` is that of another one in ``newest``.

    A verb that changes stored rows runs under the newest schema, but its caller named columns, and fields of ROW
    columns, as they were when the table was opened.
    """
    if opened.id == newest.id:
        return
    ids = dict(ids_by_path(newest.fields))
    reused = [repr(name) for name, field_id in ids_by_path(opened.fields) if ids.get(name, field_id) != field_id]
    if reused:
        message = (
            f"table {name}: since it was opened, the name of column {', '.join(reused)} was given to another column. "
            "Nothing was committed; load the table again, and name the columns as they are now"
        )
        raise InvalidInputError(message)


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
