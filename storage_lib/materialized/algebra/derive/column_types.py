"""Types of the columns of a tree that hold a source's values unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from storage_lib.materialized.algebra.tree.relational_operators import Project, Relation, Scan, Union, inputs_of

if TYPE_CHECKING:
    from storage_lib.materialized.algebra.query_sources import SourceTable

__all__ = ["column_types"]

_NOT_NULL = " not null"
_INTEGER = "integer"
_COMPARED = ("boolean", "string", "binary", "date", "timestamp", "timestamp_ntz")
_INTEGERS = ("tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long")


def column_types(tree: Relation, sources: Mapping[str, SourceTable]) -> dict[str, str]:
    """Return a name of the type by column, for columns whose values can be compared with any of the same type.

    Computed columns are left out, as are those of UNION, whose types an engine converts. Whole numbers are one type.
    Types with several ways to write one value (-0.0, nested types) are left out.
    """
    found: dict[str, str] = {}
    if isinstance(tree, Scan):
        written = {name.lower(): _comparable(kind) for name, kind in sources[tree.table].columns}
        kinds = ((own, written.get(name.lower())) for name, own in tree.columns)
        return {own: kind for own, kind in kinds if kind is not None}
    for each in inputs_of(tree):
        found.update(column_types(each, sources))
    if isinstance(tree, Project):
        for name, value in tree.items:
            if isinstance(value, exp.Column) and value.name in found:
                found[name] = found[value.name]
    if isinstance(tree, Union):
        return {name: kind for name, kind in found.items() if name not in tree.outputs}
    return found


def _comparable(kind: str) -> str | None:
    plain = kind.lower().removesuffix(_NOT_NULL).strip()
    if plain in _INTEGERS:
        return _INTEGER
    return plain if plain in _COMPARED or plain.startswith(("decimal(", "varchar(")) else None
