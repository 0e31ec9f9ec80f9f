"""Kinds of columns: values, or arrays, rows and maps of them, and the common form of two kinds.

An array, a row or a map is compared as text of its parts in their forms; the entries of a map are in the order of this
text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.types as at

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.nested_types import is_list
from storage_lib.verification.value_kind import ValueKind, common_value_kind, value_kind_of_arrow


class _Nested:
    @property
    def polars(self) -> pl.DataType:
        """Type of the form."""
        return pl.String()


@dataclass(frozen=True, slots=True)
class ArrayKind(_Nested):
    """Kind of arrays."""

    element: ColumnKind
    value = "array"


@dataclass(frozen=True, slots=True)
class MapKind(_Nested):
    """Kind of maps, and of multisets: maps of a number."""

    key: ColumnKind
    item: ColumnKind
    value = "map"


@dataclass(frozen=True, slots=True)
class StructKind(_Nested):
    """Kind of rows; ``fields`` are in the order of their names."""

    fields: tuple[tuple[str, ColumnKind], ...]
    value = "row"


ColumnKind: TypeAlias = ValueKind | ArrayKind | MapKind | StructKind


def kind_of_arrow(type_: pa.DataType) -> ColumnKind | None:
    """Return the kind of an Arrow type; None if its values can't be compared."""
    if is_list(type_):
        element = kind_of_arrow(type_.value_type)
        return None if element is None else ArrayKind(element)
    if at.is_map(type_):
        key, item = kind_of_arrow(type_.key_type), kind_of_arrow(type_.item_type)
        return None if key is None or item is None else MapKind(key, item)
    if at.is_struct(type_):
        parts = [(field.name, kind_of_arrow(field.type)) for field in sorted(type_, key=lambda field: field.name)]
        known = tuple((name, kind) for name, kind in parts if kind is not None)
        return StructKind(known) if len(known) == len(parts) == len({name for name, _ in parts}) else None
    return value_kind_of_arrow(type_)


def common_form(first: ColumnKind, second: ColumnKind) -> ColumnKind | None:
    """Return the kind in whose form values of both kinds are compared; None if they can't be equal."""
    if isinstance(first, ValueKind) and isinstance(second, ValueKind):
        return common_value_kind(first, second)
    if isinstance(first, ArrayKind) and isinstance(second, ArrayKind):
        element = common_form(first.element, second.element)
        return None if element is None else ArrayKind(element)
    if isinstance(first, MapKind) and isinstance(second, MapKind):
        key, item = common_form(first.key, second.key), common_form(first.item, second.item)
        return None if key is None or item is None else MapKind(key, item)
    if isinstance(first, StructKind) and isinstance(second, StructKind):
        if [name for name, _ in first.fields] != [name for name, _ in second.fields]:
            return None
        forms = [
            (name, common_form(one, other)) for (name, one), (_, other) in zip(first.fields, second.fields, strict=True)
        ]
        known = tuple((name, form) for name, form in forms if form is not None)
        return StructKind(known) if len(known) == len(forms) else None
    return None


def refused_column(name: str, of: str, why: str) -> InvalidInputError:
    """Return the error for a column that can't be compared."""
    return InvalidInputError(
        f"column {name} of {of} can't be compared: {why}; leave it out with exclude (--exclude {name}), or compare a "
        "query that casts it"
    )
