"""What the page of a table shows of its columns' history: which were added, dropped, renamed, or got another type."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from storage_lib import DynamicTable

__all__ = ["column_changes"]

SHOWN_MAX = 20


def column_changes(table: DynamicTable) -> list[dict[str, Any]]:
    """Return the newest changes, newest first: ``millis`` since the epoch, and ``what`` in words.

    Reads the versions of the table's schema. Changes of options and comments are left out.
    """
    versions = sorted(table.inspect.system_table("schemas").to_pylist(), key=lambda each: each["schema_id"])
    found = [
        {"millis": int(after["update_time"].timestamp() * 1000), "what": what}
        for before, after in pairwise(versions)
        for what in _changes(_columns(before), _columns(after))
    ]
    return found[::-1][:SHOWN_MAX]


def _columns(version: Mapping[str, Any]) -> dict[int, tuple[str, str]]:
    """Return names and types by the ids of columns."""
    return {each["id"]: (each["name"], _spelled(each["type"])) for each in json.loads(version["fields"])}


def _spelled(type_: object) -> str:
    return type_ if isinstance(type_, str) else str(type_["type"]) if isinstance(type_, dict) else json.dumps(type_)


def _changes(before: Mapping[int, tuple[str, str]], after: Mapping[int, tuple[str, str]]) -> Iterator[str]:
    for column, (name, type_) in after.items():
        if column not in before:
            yield f"{name} {type_} added"
            continue
        old_name, old_type = before[column]
        if old_name != name:
            yield f"{old_name} renamed to {name}"
        if old_type != type_:
            yield f"{name} changed from {old_type} to {type_}"
    for column in before.keys() - after.keys():
        yield f"{before[column][0]} dropped"
