"""Convert nested columns to and from JSON in debezium-json, encoded as Kafka Connect's JsonConverter does.

    ARRAY            [element, ...]
    ROW              {"field": value, ...}
    MAP, MULTISET    {"key": value, ...} if keys are strings, otherwise [[key, value], ...]

Leaves are encoded like columns (``debezium_columns``). Whole columns are converted at once, with one exception:
Arrow's JSON reader supports neither objects with unknown keys nor quoted numbers, so ``from_parsed`` converts the
output of ``json.loads`` for columns with maps and for nested columns of batches with a NaN or an infinity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.codec.debezium_columns import from_json_column, json_type, to_json_column
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, null_mask, struct_child, struct_of
from storage_lib.schema.types.nested_types import (
    ArrayType,
    MapType,
    MultisetType,
    RowType,
    children_of,
    is_nested,
    leaves_of,
)


@dataclass(frozen=True, slots=True)
class LeafSpelling:
    """JSON encoding of values that are not nested.

    ``json_type`` returns the Arrow type that a JSON reader must expect for a type; ``from_json_column`` converts such
    a column to the field's type and raises ``ValueError`` for an invalid value.
    """

    json_type: Callable[[pa.DataType], pa.DataType]
    from_json_column: Callable[[pa.Array, DataField], pa.Array]


DEBEZIUM = LeafSpelling(json_type, from_json_column)
_TEXT_ROOTS = (TypeRoot.CHAR, TypeRoot.VARCHAR)
_FLOAT_ROOTS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_LEAF_PREFIX = '{"v":'


def has_map(of: DataType) -> bool:
    """Whether a type contains a MAP or MULTISET at any depth."""
    return of.root in (TypeRoot.MAP, TypeRoot.MULTISET) or any(has_map(child) for _, child in children_of(of))


def has_float(of: DataType) -> bool:
    """Whether a type contains a FLOAT or DOUBLE at any depth."""
    return any(leaf.root in _FLOAT_ROOTS for _, leaf in leaves_of(of))


def nested_json_type(of: DataType, leaves: LeafSpelling = DEBEZIUM) -> pa.DataType:
    """Return the Arrow type that a JSON reader must expect for a type, at any depth."""
    match of:
        case ArrayType():
            return pa.list_(nested_json_type(of.element, leaves))
        case MapType() | MultisetType():
            key, value = _entry_types(of)
            return pa.map_(nested_json_type(key, leaves), nested_json_type(value, leaves))
        case RowType():
            return pa.struct([pa.field(each.name, nested_json_type(each.type, leaves)) for each in of.fields])
        case _:
            return leaves.json_type(of.arrow)


def to_json_text(column: pa.Array, of: DataType, name: str) -> pa.Array:
    """Encode each value as JSON text (a string array without nulls). Raises as ``to_json_column`` does."""
    match of:
        case ArrayType():
            lists = list_parts(column)
            elements = to_json_text(lists.values, of.element, f"{name}.element")
            return _null_where(column, _wrapped("[", _joined(lists.offsets, elements), "]"))
        case MapType() | MultisetType():
            key, value = _entry_types(of)
            maps = map_parts(column)
            keys = to_json_text(maps.keys, key, f"{name}.key")
            values = to_json_text(maps.values, value, f"{name}.value")
            if key.root in _TEXT_ROOTS:
                entries = pc.binary_join_element_wise(keys, values, ":")
                return _null_where(column, _wrapped("{", _joined(maps.offsets, entries), "}"))
            entries = _wrapped("[", pc.binary_join_element_wise(keys, values, ","), "]")
            return _null_where(column, _wrapped("[", _joined(maps.offsets, entries), "]"))
        case RowType():
            parts: list[Any] = []
            for each in of.fields:
                inside = to_json_text(struct_child(column, each.name), each.type, f"{name}.{each.name}")
                parts += [f"{',' if parts else ''}{json.dumps(each.name, ensure_ascii=False)}:", inside]
            return _null_where(column, _wrapped("{", pc.binary_join_element_wise(*parts, ""), "}"))
        case _:
            return _leaf_text(to_json_column(column, DataField(id=-1, name=name, type=of)))


def from_json(column: pa.Array, of: DataType, name: str, leaves: LeafSpelling = DEBEZIUM) -> pa.Array:
    """Decode a column of ``nested_json_type``. Raises ``ValueError`` for a value that is not of the type."""
    match of:
        case ArrayType():
            lists = list_parts(column)
            return lists.with_values(from_json(lists.values, of.element, f"{name}.element", leaves), of.arrow)
        case MapType() | MultisetType():
            key, value = _entry_types(of)
            maps = map_parts(column)
            keys = from_json(maps.keys, key, f"{name}.key", leaves)
            return maps.with_entries(keys, from_json(maps.values, value, f"{name}.value", leaves), of.arrow)
        case RowType():
            children = [
                from_json(struct_child(column, each.name), each.type, f"{name}.{each.name}", leaves)
                for each in of.fields
            ]
            return struct_of(children, of.arrow, null_mask(column), len(column))
        case _:
            return leaves.from_json_column(column, DataField(id=-1, name=name, type=of))


def from_parsed(values: list[Any], of: DataType, name: str, leaves: LeafSpelling = DEBEZIUM) -> pa.Array:
    """Build a column of ``nested_json_type`` from the output of ``json.loads``. Raises ``ValueError`` on a mismatch."""
    return pa.array([_arrow_ready(value, of, name) for value in values], nested_json_type(of, leaves))


def _arrow_ready(value: Any, of: DataType, name: str) -> Any:
    if value is None:
        return None
    match of:
        case ArrayType() if isinstance(value, list):
            return [_arrow_ready(each, of.element, name) for each in value]
        case MapType() | MultisetType() if isinstance(value, list | dict):
            key, item = _entry_types(of)
            pairs = _pairs(value, of, name)
            return [(_arrow_ready(each, key, name), _arrow_ready(its, item, name)) for each, its in pairs]
        case RowType() if isinstance(value, dict):
            return {each.name: _arrow_ready(value.get(each.name), each.type, name) for each in of.fields}
        case _ if not isinstance(value, list | dict) and not is_nested(of):
            # float() parses Jackson's "NaN", "Infinity" and "-Infinity".
            return float(value) if of.root in _FLOAT_ROOTS and not isinstance(value, bool) else value
        case _:
            raise _wrong_shape(of, name)


def _pairs(value: list[Any] | dict[str, Any], of: DataType, name: str) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return value.items()
    if not all(isinstance(pair, list) and len(pair) == len(("key", "value")) for pair in value):
        raise _wrong_shape(of, name)
    return value


def _wrong_shape(of: DataType, name: str) -> ValueError:
    return ValueError(f"column {name!r} contains JSON that is not a {of}")


def _entry_types(of: MapType | MultisetType) -> tuple[DataType, DataType]:
    if isinstance(of, MapType):
        return of.key, of.value
    return of.element, DataType(TypeRoot.INTEGER, nullable=False)


def _leaf_text(column: pa.Array) -> pa.Array:
    """Encode a scalar column of ``json_type`` as JSON text."""
    frame = pl.DataFrame({"v": pl.Series(pl.from_arrow(column))})
    rows = frame.select(pl.struct(pl.all()).struct.json_encode().alias("row"))["row"]
    leaf = rows.to_arrow().cast(pa.string())
    leaf = pc.utf8_slice_codeunits(leaf, len(_LEAF_PREFIX), -1)
    if not pa.types.is_floating(column.type):
        return leaf
    word = pc.if_else(pc.is_nan(column), '"NaN"', pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"'))
    return pc.if_else(pc.fill_null(pc.is_finite(column), fill_value=True), leaf, word)


def _joined(offsets: np.ndarray, texts: pa.Array) -> pa.Array:
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), ",")


def _wrapped(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, texts, after, "")


def _null_where(column: pa.Array, texts: pa.Array) -> pa.Array:
    return texts if column.null_count == 0 else pc.if_else(column.is_valid(), texts, "null")
