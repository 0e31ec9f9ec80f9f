"""Arrow arrays of nested types taken apart and put together again, whole columns at a time.

    ARRAY          offsets, elements, nulls
    MAP, MULTISET  offsets, keys, values, nulls
    ROW            one child an array, nulls

Parts are free of what a slice or a null leaves behind in Arrow's buffers: elements are exactly those of valid rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.schema.types.variant import filled, has_variants, is_variant

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListParts:
    """Row ``i`` has the elements ``offsets[i]`` up to, not including, ``offsets[i + 1]``; ``nulls`` None: no nulls."""

    offsets: npt.NDArray[np.int32]
    values: pa.Array
    nulls: Mask | None

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """How many elements each row has."""
        lengths: npt.NDArray[np.int32] = np.diff(self.offsets)
        return lengths

    def with_values(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """A list array of that type with other elements in the same places."""
        return pa.ListArray.from_arrays(pa.array(self.offsets), values, type=type_, mask=_mask(self.nulls))


@dataclass(frozen=True, slots=True, kw_only=True)
class MapParts:
    """As ``ListParts``, with a key and a value for each entry."""

    offsets: npt.NDArray[np.int32]
    keys: pa.Array
    values: pa.Array
    nulls: Mask | None

    def with_entries(self, keys: pa.Array, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """A map array of that type with other keys and values in the same places."""
        return pa.MapArray.from_arrays(pa.array(self.offsets), keys, values, type=type_, mask=_mask(self.nulls))


def list_parts(array: pa.Array) -> ListParts:
    """Take a list array apart."""
    array = _without_hidden_elements(array)
    offsets = array.offsets.to_numpy()
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    return ListParts(
        offsets=_from_zero(offsets), values=array.values.slice(first, last - first), nulls=null_mask(array)
    )


def map_parts(array: pa.MapArray) -> MapParts:
    """Take a map array apart."""
    array = _without_hidden_elements(array)
    offsets = array.offsets.to_numpy()
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    return MapParts(
        offsets=_from_zero(offsets),
        keys=array.keys.slice(first, last - first),
        values=array.items.slice(first, last - first),
        nulls=null_mask(array),
    )


def struct_child(array: pa.StructArray, name: str) -> pa.Array:
    """One child of a struct array, null wherever the struct is; names that differ from ``name`` don't count."""
    child = array.field(array.type.get_field_index(name))
    if array.null_count == 0:
        return child
    # Taking nothing where the struct is null, whatever the child holds there.
    rows = np.arange(len(array))
    return child.take(pa.array(rows, mask=null_mask(array)))


def struct_of(children: list[pa.Array], type_: pa.StructType, nulls: Mask | None, length: int) -> pa.Array:
    """A struct array of that type; at least one child."""
    fields = [type_.field(index) for index in range(type_.num_fields)]
    made = pa.StructArray.from_arrays(children, fields=fields, mask=_mask(nulls))
    assert len(made) == length  # noqa: S101  children of other lengths would be a bug here
    return made


def with_nulls_below(array: pa.Array) -> pa.Array:
    """The same values, with every part of a null row null as well, where Arrow lets it be anything."""
    type_ = array.type
    if pa.types.is_list(type_):
        lists = list_parts(array)
        return lists.with_values(with_nulls_below(lists.values), type_)
    if pa.types.is_map(type_):
        maps = map_parts(array)
        return maps.with_entries(with_nulls_below(maps.keys), with_nulls_below(maps.values), type_)
    if pa.types.is_struct(type_):
        names = [type_.field(index).name for index in range(type_.num_fields)]
        children = [with_nulls_below(struct_child(array, name)) for name in names]
        return struct_of(children, type_, null_mask(array), len(array))
    return array


def with_filled_variants(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same values, with no null in any part of a variant, as files want it.

    ``type_`` tells which parts are variants: an array out of a file has no marks.
    """
    if not has_variants(type_):
        return array
    if pa.types.is_list(type_):
        lists = list_parts(array)
        return lists.with_values(with_filled_variants(lists.values, type_.value_type), type_)
    if pa.types.is_map(type_):
        maps = map_parts(array)
        keys = with_filled_variants(maps.keys, type_.key_type)
        return maps.with_entries(keys, with_filled_variants(maps.values, type_.item_type), type_)
    if is_variant(type_):
        return filled(array)
    children = [with_filled_variants(struct_child(array, each.name), each.type) for each in type_]
    return struct_of(children, type_, null_mask(array), len(array))


def null_mask(array: pa.Array) -> Mask | None:
    """Where an array is null; None if nowhere."""
    if array.null_count == 0:
        return None
    mask: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def _without_hidden_elements(array: pa.Array) -> pa.Array:
    """A null list may have elements in the buffers; taking the rows leaves them behind."""
    if array.null_count == 0:
        return array
    lengths = np.diff(array.offsets.to_numpy())
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return array.take(pa.array(np.arange(len(array)))) if lengths[nulls].any() else array


def _from_zero(offsets: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    if len(offsets) == 0:
        return np.zeros(1, dtype=np.int32)
    moved: npt.NDArray[np.int32] = offsets - offsets[0]
    return moved


def _mask(nulls: Mask | None) -> pa.Array | None:
    return None if nulls is None else pa.array(nulls)
