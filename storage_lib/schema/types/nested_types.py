"""Types composed of other types: ARRAY, MAP, MULTISET and ROW (docs/format.md, 1.3), and their Arrow types.

    ARRAY<t>         list<element: t>
    MAP<k, v>        map<k, v>; Arrow and Parquet have no null keys, whatever ``k`` says
    MULTISET<t>      map<t, int32>: the count of each element
    ROW<a t, ...>    struct<a: t, ...>
    VARIANT          struct<value: binary, metadata: binary>, whose parts are not column types: see ``variant``

Inside a nested Arrow type every part is nullable, regardless of the type, because the parts of a null row exist in
Arrow as well. NOT NULL parts are checked when rows are read in (``table.input_arrays``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot, data_type_of_arrow
from storage_lib.schema.types.variant import is_variant

_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ArrayType(DataType):
    """ARRAY: elements in order."""

    root: TypeRoot = field(default=TypeRoot.ARRAY, init=False)
    element: DataType = field(kw_only=True)

    @property
    def arrow(self) -> pa.DataType:
        """Arrow's list type."""
        return _arrow_of(self)

    def __str__(self) -> str:
        """Format as ``ARRAY<INT> NOT NULL``."""
        return _with_nullability(self, f"ARRAY<{self.element}>")


@dataclass(frozen=True, slots=True)
class MapType(DataType):
    """MAP: values by key."""

    root: TypeRoot = field(default=TypeRoot.MAP, init=False)
    key: DataType = field(kw_only=True)
    value: DataType = field(kw_only=True)

    @property
    def arrow(self) -> pa.DataType:
        """Arrow's map type."""
        return _arrow_of(self)

    def __str__(self) -> str:
        """Format as ``MAP<STRING, INT>``."""
        return _with_nullability(self, f"MAP<{self.key}, {self.value}>")


@dataclass(frozen=True, slots=True)
class MultisetType(DataType):
    """MULTISET: elements with their counts."""

    root: TypeRoot = field(default=TypeRoot.MULTISET, init=False)
    element: DataType = field(kw_only=True)

    @property
    def arrow(self) -> pa.DataType:
        """Arrow's map type, from elements to counts."""
        return _arrow_of(self)

    def __str__(self) -> str:
        """Format as ``MULTISET<STRING>``."""
        return _with_nullability(self, f"MULTISET<{self.element}>")


@dataclass(frozen=True, slots=True)
class RowType(DataType):
    """ROW: named fields, each with its own id. Raises ``InvalidInputError`` for no fields or duplicate names."""

    root: TypeRoot = field(default=TypeRoot.ROW, init=False)
    fields: tuple[DataField, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        """Refuse fields that no file can hold."""
        names = [each.name for each in self.fields]
        repeated = [name for name in names if names.count(name) > 1 or not name]
        if repeated or not names:
            what = f"field {repeated[0]!r} is empty or repeated" if repeated else "it has no fields"
            message = f"a ROW needs fields of different names, but {what}; rename or drop it"
            raise InvalidInputError(message)

    @property
    def arrow(self) -> pa.DataType:
        """Arrow's struct type."""
        return _arrow_of(self)

    def __str__(self) -> str:
        """Format as ``ROW<a INT, b STRING>``."""
        inside = ", ".join(f"{_spelled_name(each.name)} {each.type}" for each in self.fields)
        return _with_nullability(self, f"ROW<{inside}>")


NESTED_ROOTS = frozenset({TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.MULTISET, TypeRoot.ROW, TypeRoot.VARIANT})


def is_nested(of: DataType) -> bool:
    """Whether values have parts: such columns can't be keys, partition columns or compared, and have no statistics."""
    return of.root in NESTED_ROOTS


def children_of(of: DataType) -> tuple[tuple[str, DataType], ...]:
    """Return names and types of the parts of a type; empty for a scalar type and for a VARIANT."""
    match of:
        case ArrayType() | MultisetType():
            return (("element", of.element),)
        case MapType():
            return (("key", of.key), ("value", of.value))
        case RowType():
            return tuple((each.name, each.type) for each in of.fields)
        case _:
            return ()


def leaves_of(of: DataType, path: str = "") -> Iterator[tuple[str, DataType]]:
    """Yield every scalar type and VARIANT in a type with its dotted path below ``path``."""
    children = children_of(of)
    if not children:
        yield path, of
    for name, child in children:
        yield from leaves_of(child, f"{path}.{name}" if path else name)


def ids_by_path(fields: Iterable[DataField], within: str = "") -> Iterator[tuple[str, int]]:
    """Yield dotted path and id of each field, and of the fields of every ROW in it; ``within`` precedes the paths."""
    for each in fields:
        yield f"{within}{each.name}", each.id
        yield from _ids_below(each.type, f"{within}{each.name}.")


def _ids_below(of: DataType, within: str) -> Iterator[tuple[str, int]]:
    if isinstance(of, RowType):
        yield from ids_by_path(of.fields, within)
    else:
        for name, part in children_of(of):
            yield from _ids_below(part, f"{within}{name}.")


def has_variant(of: DataType) -> bool:
    """Whether a type is a VARIANT or contains one."""
    return any(leaf.root is TypeRoot.VARIANT for _, leaf in leaves_of(of))


def with_new_ids(of: DataType, next_id: Callable[[], int]) -> DataType:
    """Assign ids from ``next_id`` to all ROW fields, to each field before the fields inside it."""
    match of:
        case ArrayType() | MultisetType():
            return replace(of, element=with_new_ids(of.element, next_id))
        case MapType():
            return replace(of, key=with_new_ids(of.key, next_id), value=with_new_ids(of.value, next_id))
        case RowType():
            fields = []
            for each in of.fields:
                own_id = next_id()
                fields.append(replace(each, id=own_id, type=with_new_ids(each.type, next_id)))
            return replace(of, fields=tuple(fields))
        case _:
            return of


def column_type_of_arrow(arrow: pa.DataType, *, nullable: bool = True) -> DataType:
    """Return the type of an input column of type ``arrow``, nested or not; ROW fields get the id -1.

    Raises ``InvalidInputError`` for unsupported Arrow types.
    """
    if is_list(arrow):
        element = arrow.value_field
        return ArrayType(nullable, element=column_type_of_arrow(element.type, nullable=element.nullable))
    if pa.types.is_map(arrow):
        return MapType(
            nullable,
            key=column_type_of_arrow(arrow.key_type, nullable=False),
            value=column_type_of_arrow(arrow.item_type, nullable=arrow.item_field.nullable),
        )
    if pa.types.is_struct(arrow) and not is_variant(arrow):
        return RowType(nullable, fields=tuple(_fields_of_arrow(arrow)))
    return data_type_of_arrow(arrow, nullable=nullable)


def _fields_of_arrow(fields: Iterable[pa.Field]) -> Iterator[DataField]:
    for each in fields:
        yield DataField(id=-1, name=each.name, type=column_type_of_arrow(each.type, nullable=each.nullable))


def is_list(arrow: pa.DataType) -> bool:
    """Whether an Arrow type is one of its list types (maps are not)."""
    return bool(
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
        or pa.types.is_list_view(arrow)
        or pa.types.is_large_list_view(arrow)
    )


def has_nanoseconds(arrow: pa.DataType) -> bool:
    """Whether an Arrow type contains a timestamp in nanoseconds at any depth."""
    if pa.types.is_nested(arrow):
        return any(has_nanoseconds(arrow.field(index).type) for index in range(arrow.num_fields))
    return bool(pa.types.is_timestamp(arrow) and arrow.unit == "ns")


@cache
def _arrow_of(of: DataType) -> pa.DataType:
    match of:
        case ArrayType():
            return pa.list_(pa.field("element", of.element.arrow))
        case MapType():
            return pa.map_(pa.field("key", of.key.arrow, nullable=False), pa.field("value", of.value.arrow))
        case MultisetType():
            return pa.map_(pa.field("key", of.element.arrow, nullable=False), pa.field("value", pa.int32()))
        case RowType():
            return pa.struct([pa.field(each.name, each.type.arrow) for each in of.fields])
        case _:
            return of.arrow


def _with_nullability(of: DataType, text: str) -> str:
    return text if of.nullable else f"{text} NOT NULL"


def _spelled_name(name: str) -> str:
    return name if _SIMPLE_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
