"""Remove the padding of CHAR(n) in ORC files: ORC pads values with spaces, and its readers strip them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, null_mask, struct_child, struct_of
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType, leaves_of


def has_padding(of: DataType) -> bool:
    """Whether the type is CHAR(n) or contains one."""
    return any(each.root is TypeRoot.CHAR for _, each in leaves_of(of))


def without_padding(array: pa.Array, of: DataType) -> pa.Array:
    """Strip the trailing spaces of each CHAR(n) in a column of an ORC file, stored as ``of``."""
    if not has_padding(of):
        return array
    match of:
        case ArrayType():
            lists = list_parts(array if pa.types.is_list(array.type) else array.cast(pa.list_(array.type.value_type)))
            values = without_padding(lists.values, of.element)
            return lists.with_values(values, pa.list_(values.type))
        case MapType():
            maps = map_parts(array)
            keys, values = without_padding(maps.keys, of.key), without_padding(maps.values, of.value)
            return maps.with_entries(keys, values, pa.map_(keys.type, values.type))
        case MultisetType():
            maps = map_parts(array)
            keys = without_padding(maps.keys, of.element)
            return maps.with_entries(keys, maps.values, pa.map_(keys.type, maps.values.type))
        case RowType():
            types = {each.name: each.type for each in of.fields}
            fields = [array.type.field(index) for index in range(array.type.num_fields)]
            children = [struct_child(array, each.name) for each in fields]
            bare = [
                without_padding(child, types[each.name]) if each.name in types else child
                for each, child in zip(fields, children, strict=True)
            ]
            type_ = pa.struct([each.with_type(child.type) for each, child in zip(fields, bare, strict=True)])
            return struct_of(bare, type_, null_mask(array), len(array))
        case _:
            return pc.utf8_rtrim(array, " ")
