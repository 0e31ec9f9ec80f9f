"""Convert a column of an older file to its current type: fields are found by id, types widened, new fields null.

The rules are in docs/format.md, "Schema", and docs/decisions on schema evolution.
"""

from __future__ import annotations

import pyarrow as pa

from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, null_mask, struct_child, struct_of
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType, children_of
from storage_lib.schema.types.variant import as_variants

_COUNT = DataType(TypeRoot.INTEGER, nullable=False)


def evolved(array: pa.Array, stored: DataType, wanted: DataType) -> pa.Array:
    """Convert ``array``, written as ``stored``, to ``wanted``.

    Raises ``pa.ArrowInvalid`` or ``pa.ArrowNotImplementedError`` for values that the wanted type can't hold,
    ``InvalidInputError`` for variants that are not stored as their two byte strings.
    """
    if array.type == wanted.arrow and stands_as_it_is(stored, wanted):
        return array
    match stored, wanted:
        case ArrayType(), ArrayType():
            lists = list_parts(array if pa.types.is_list(array.type) else array.cast(pa.list_(array.type.value_type)))
            return lists.with_values(evolved(lists.values, stored.element, wanted.element), wanted.arrow)
        case (MapType() | MultisetType(), MapType() | MultisetType()):
            maps = map_parts(array)
            (stored_key, stored_value), (wanted_key, wanted_value) = _entry(stored), _entry(wanted)
            keys = evolved(maps.keys, stored_key, wanted_key)
            return maps.with_entries(keys, evolved(maps.values, stored_value, wanted_value), wanted.arrow)
        case RowType(), RowType():
            return _evolved_row(array, stored, wanted)
        case _:
            return as_variants(array) if wanted.root is TypeRoot.VARIANT else array.cast(wanted.arrow)


def stands_as_it_is(stored: DataType, wanted: DataType) -> bool:
    """Whether values written as ``stored`` need no conversion if they have the Arrow type of ``wanted``.

    False if nested fields may have other ids: a field of a ROW may reuse the name of a former one.
    """
    return stored is wanted or stored == wanted or not children_of(wanted)


def _evolved_row(array: pa.StructArray, stored: RowType, wanted: RowType) -> pa.Array:
    by_id = {each.id: each for each in stored.fields}
    children = []
    for each in wanted.fields:
        was = by_id.get(each.id)
        if was is None or array.type.get_field_index(was.name) < 0:
            children.append(pa.nulls(len(array), each.type.arrow))
        else:
            children.append(evolved(struct_child(array, was.name), was.type, each.type))
    return struct_of(children, wanted.arrow, null_mask(array), len(array))


def _entry(of: MapType | MultisetType) -> tuple[DataType, DataType]:
    return (of.key, of.value) if isinstance(of, MapType) else (of.element, _COUNT)
