"""Precedence of options: hint of the statement, table, session, connection, default."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.schema.options.external_paths import is_of_directories
from storage_lib.schema.options.table_options import TableOptions, canonical_options


def merged_options(
    *,
    hint: Mapping[str, str] | None = None,
    table: Mapping[str, str] | None = None,
    session: Mapping[str, str] | None = None,
    connection: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the effective options under the keys of this version; an earlier argument overrides a later one.

    Each may use older keys and the session's prefix. ``TableOptions.parse`` fills in the defaults.
    Options of data directories belong together: a level that sets one of them replaces all those of lower levels.
    """
    merged: dict[str, str] = {}
    for layer in (connection, session, table, hint):
        given = canonical_options(layer)
        if any(map(is_of_directories, given)):
            merged = {key: value for key, value in merged.items() if not is_of_directories(key)}
        merged |= given
    return merged


def effective_options(
    *,
    hint: Mapping[str, str] | None = None,
    table: Mapping[str, str] | None = None,
    session: Mapping[str, str] | None = None,
    connection: Mapping[str, str] | None = None,
) -> TableOptions:
    """Parse the result of ``merged_options`` and fill in defaults. Raises as ``TableOptions.parse`` does."""
    return TableOptions.parse(merged_options(hint=hint, table=table, session=session, connection=connection))
