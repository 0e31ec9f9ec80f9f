"""Databases that tables follow by their topics, declared in the file that declares the tables.

    syncs:
      shop:
        topics: shop.public.*
        into: shop
        options: {source.on-reject: quarantine}

The keys are `SyncDatabaseOperator`'s arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import (
    checked_count,
    checked_flag,
    checked_mapping,
    checked_names,
    checked_options,
    checked_text,
)
from dynamic_table.declarations.table_declarations import (
    SYNCS,
    check_values,
    load_declarations,
    refusal,
    refuse_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["read_syncs"]

REQUIRED = ("topics", "into")
# Check of each key's value.
CHECKS: Mapping[str, Callable[[Any], object]] = {
    "topics": lambda value: checked_names([value] if isinstance(value, str) else value, "topics"),
    "into": lambda value: checked_text(value, "into"),
    "format": lambda value: checked_text(value, "format"),
    "exclude": lambda value: checked_names(value, "exclude"),
    "prefix": lambda value: checked_text(value, "prefix"),
    "suffix": lambda value: checked_text(value, "suffix"),
    "rename": lambda value: checked_mapping(value, "rename"),
    "merge_shards": lambda value: checked_flag(value, "merge_shards"),
    "options": lambda value: checked_options(value, "options"),
    "table_options": lambda value: checked_options(value, "table_options"),
    "workers": lambda value: checked_count(value, "workers", least=1),
    "expectations": lambda value: checked_mapping(value, "expectations"),
}


def read_syncs(source: str, folder: Path) -> list[dict[str, Any]]:
    """Return ``SyncDatabaseOperator``'s arguments for every entry of ``syncs``, in the order declared.

    ``source`` and errors are as in ``read_declarations``.
    """
    where, declared = load_declarations(source, folder)
    return [_sync(where, f"sync {name}", sync) for name, sync in declared[SYNCS].items()]


def _sync(where: str, what: str, declared: object) -> dict[str, Any]:
    if not isinstance(declared, Mapping) or any(not declared.get(key) for key in REQUIRED):
        raise refusal(where, f"{what} is {declared!r}; it has to be a mapping with at least topics and into")
    check_values(where, what, what, declared, CHECKS)
    for key in ("options", "table_options"):
        refuse_secrets(where, what, declared.get(key) or {})
    return dict(declared)
