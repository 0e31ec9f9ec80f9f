"""``verify_tables``: compares tables with their sources; one that can't be compared does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from storage_lib.errors import NotFoundError, StorageError
from storage_lib.verification.verify import verify

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.verification.verification import Verification

__all__ = ["TableVerification", "verify_tables"]

_NAME = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVerification:
    """The comparison of one table: its result, or the error because of which it was not compared."""

    table: str
    result: Verification | None = None
    error: StorageError | None = None


def verify_tables(
    catalog: Catalog,
    pattern: str,
    against: str,
    *,
    relation: str | None = None,
    exclude: Sequence[str] = (),
    limit: int = 20,
) -> Iterator[TableVerification]:
    """Compare every table whose name matches ``pattern`` (``shop.*``), one after the other, in order of their names.

    A ``*`` in ``against`` or ``relation`` is the table's name without its database: ``archive.*``, ``public.*``,
    ``./export/*``. ``against`` is an address of PostgreSQL, a path with a slash, or the name of another table.
    ``exclude`` names columns, which tables may lack. Raises ``NotFoundError`` if no table matches.
    """
    names = [name for name in catalog.list_tables() if fnmatchcase(name, pattern)]
    if not names:
        message = f"no table matches {pattern}; list the tables with list_tables() (`dynamic-table tables`)"
        raise NotFoundError(message)
    for name in names:
        own = name.rpartition(".")[2]
        try:
            source = against.replace(_NAME, own)
            result = verify(
                catalog.load_table(name),
                source if is_address(source) else catalog.load_table(source),
                relation=None if relation is None else relation.replace(_NAME, own),
                exclude=exclude,
                limit=limit,
            )
        except StorageError as error:
            yield TableVerification(table=name, error=error)
        else:
            yield TableVerification(table=name, result=result)


def is_address(source: str) -> bool:
    """Whether the text names files or a database, rather than a table as ``database.table``."""
    return "/" in source or source.endswith(".parquet")
