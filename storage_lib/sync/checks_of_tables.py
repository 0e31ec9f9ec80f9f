"""Checks of the new rows of some tables of a sync.

A check is a function of the user. Whatever it raises concerns its table: the topics of the others are read.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.table.sources.row_check import RowCheck

_log = logging.getLogger(__name__)


def checked_by_table(checks: Mapping[str, RowCheck], into: str) -> dict[str, RowCheck]:
    """Return the checks so that an error of theirs is one of the library, which names the table.

    Raises ``InvalidInputError`` for a table that is in another database than ``into``.
    """
    for table in checks:
        name = TableName.parse_plain(table)
        if name.database != into:
            message = f"expect names table {table}, but this sync's tables are in {into}, such as {into}.{name.table}"
            raise InvalidInputError(message)
    return {table: partial(_checked, table, check) for table, check in checks.items()}


def warn_of_checks_without_topic(checks: Mapping[str, RowCheck], tables: Collection[str]) -> None:
    """Log a warning about tables that are to be checked and have no topic: it may come later, or the name is wrong."""
    missing = sorted(set(checks) - set(tables))
    if missing:
        _log.warning("sync: no topic becomes table %s, whose rows are to be checked", ", ".join(missing))


def _checked(table: str, check: RowCheck, rows: pa.Table) -> Mapping[int, tuple[str | None, str]]:
    try:
        return check(rows)
    except StorageError:
        raise
    except Exception as error:
        message = f"table {table}: the check of its new rows failed, {type(error).__name__}: {error}"
        raise InvalidInputError(message) from error
