"""Split Arrow arrays of nested types into parts, and rebuild them, whole columns at a time.

    ARRAY          offsets, elements, nulls
    MAP, MULTISET  offsets, keys, values, nulls
    ROW            one array per child, nulls

Parts contain exactly the elements of valid rows, without those that slices and nulls leave in Arrow's buffers.
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
    """Row ``i`` has the elements from ``offsets[i]`` to ``offsets[i + 1]``, exclusive; ``nulls`` None: no nulls."""

    offsets: npt.NDArray[np.int32]
    values: pa.Array
    nulls: Mask | None

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Number of elements per row."""
        lengths: npt.NDArray[np.int32] = np.diff(self.offsets)
        return lengths

    def with_values(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """Build a list array of that type with other elements and the same offsets."""
        return pa.ListArray.from_arrays(pa.array(self.offsets), values, type=type_, mask=_mask(self.nulls))


@dataclass(frozen=True, slots=True, kw_only=True)
class MapParts:
    """Parts as in ``ListParts``, with a key and a value per entry."""

    offsets: npt.NDArray[np.int32]
    keys: pa.Array
    values: pa.Array
    nulls: Mask | None

    def with_entries(self, keys: pa.Array, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """Build a map array of that type with other keys and values and the same offsets."""
        return pa.MapArray.from_arrays(pa.array(self.offsets), keys, values, type=type_, mask=_mask(self.nulls))


def as_list(array: pa.Array) -> pa.Array:
    """Return an array of any list type as a ``list``."""
    kind = array.type
    if pa.types.is_list(kind):
        return array
    if not (pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)):
        return array.cast(pa.list_(kind.value_type))
    # pyarrow (up to 26) casts a view to a list with too short a buffer of offsets.
    nulls = null_mask(array)
    sizes = array.sizes.to_numpy().astype(np.int64)
    if nulls is not None:
        sizes[np.asarray(nulls)] = 0
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    mask = None if nulls is None else pa.array(np.asarray(nulls))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), array.flatten(), mask=mask)


def list_parts(array: pa.Array) -> ListParts:
    """Split a list array into its parts."""
    array = _without_hidden_elements(array)
    offsets = array.offsets.to_numpy()
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    return ListParts(
        offsets=_from_zero(offsets), values=array.values.slice(first, last - first), nulls=null_mask(array)
    )


def map_parts(array: pa.MapArray) -> MapParts:
    """Split a map array into its parts."""
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
    """Return the child ``name`` of a struct array, null wherever the struct is."""
    child = array.field(array.type.get_field_index(name))
    if array.null_count == 0:
        return child
    # Null wherever the struct is null, whatever the child holds there.
    rows = np.arange(len(array))
    return child.take(pa.array(rows, mask=null_mask(array)))


def struct_of(children: list[pa.Array], type_: pa.StructType, nulls: Mask | None, length: int) -> pa.Array:
    """Build a struct array of that type from one or more children."""
    fields = [type_.field(index) for index in range(type_.num_fields)]
    made = pa.StructArray.from_arrays(children, fields=fields, mask=_mask(nulls))
    assert len(made) == length  # noqa: S101  children of other lengths would be a bug here
    return made


def with_nulls_below(array: pa.Array) -> pa.Array:
    """Set every part of a null row, which is undefined in Arrow, to null."""
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
    """Replace nulls in the parts of variants, which files do not allow.

    ``type_`` tells which parts are variants: an array read from a file lacks the marks.
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
    """Return the mask of an array's nulls; None if there are none."""
    if array.null_count == 0:
        return None
    mask: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def _without_hidden_elements(array: pa.Array) -> pa.Array:
    """Drop elements that null lists have in the buffers, by taking the rows."""
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
