"""Random nested types and rows of them, for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, parse_data_type
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType

LEAVES = (
    "BOOLEAN",
    "TINYINT",
    "INT",
    "BIGINT NOT NULL",
    "DOUBLE",
    "STRING",
    "STRING NOT NULL",
    "BYTES",
    "DECIMAL(10, 2)",
    "DATE",
    "TIME(3)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(6)",
)
_KEYS = ("STRING NOT NULL", "INT NOT NULL", "DATE NOT NULL")


def types(leaves: Sequence[str] = LEAVES, *, with_maps: bool = True) -> st.SearchStrategy[DataType]:
    """Generate types up to a few levels deep."""
    scalar = st.sampled_from(leaves).map(parse_data_type)
    nullable = st.booleans()

    def wider(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        rows = st.lists(inner, min_size=1, max_size=3).map(_fields)
        kinds: list[st.SearchStrategy[DataType]] = [
            st.builds(lambda n, e: ArrayType(n, element=e), nullable, inner),
            st.builds(lambda n, f: RowType(n, fields=f), nullable, rows),
        ]
        if with_maps:
            keys = st.sampled_from(_KEYS).map(parse_data_type)
            kinds.append(st.builds(lambda n, k, v: MapType(n, key=k, value=v), nullable, keys, inner))
            kinds.append(st.builds(lambda n, k: MultisetType(n, element=k), nullable, keys))
        return st.one_of(kinds)

    return st.recursive(scalar, wider, max_leaves=5)


def values(of: DataType) -> st.SearchStrategy[Any]:
    """Generate Python values that ``pa.array`` accepts for the type, including None if it is nullable."""
    known = _values(of)
    return st.none() | known if of.nullable else known


@st.composite
def tables(
    draw: st.DrawFn, *, rows_max: int = 5, with_maps: bool = True, leaves: Sequence[str] = LEAVES
) -> tuple[TableSchema, pa.RecordBatch]:
    """Generate a table with the key ``id``, up to three more columns of any type, and rows with ascending ids."""
    chosen = draw(st.lists(types(leaves, with_maps=with_maps), min_size=1, max_size=3))
    columns = [("id", parse_data_type("BIGINT")), *((f"c{index}", each) for index, each in enumerate(chosen))]
    schema = new_table_schema(columns, primary_keys=["id"], options={"bucket": "1"}, time_millis=0)
    count = draw(st.integers(0, rows_max))
    arrays = [pa.array(range(count), pa.int64())]
    for each in schema.fields[1:]:
        drawn = draw(st.lists(values(each.type), min_size=count, max_size=count))
        arrays.append(pa.array(drawn, each.type.arrow))
    return schema, pa.RecordBatch.from_arrays(arrays, schema=schema.arrow_schema)


def _fields(inner: list[DataType]) -> tuple[DataField, ...]:
    return tuple(DataField(id=-1, name=f"f{index}", type=each) for index, each in enumerate(inner))


def _values(of: DataType) -> st.SearchStrategy[Any]:
    match of:
        case ArrayType():
            return st.lists(values(of.element), max_size=3)
        case MapType():
            return st.dictionaries(_values(of.key), values(of.value), max_size=3).map(lambda d: list(d.items()))
        case MultisetType():
            return st.dictionaries(_values(of.element), st.integers(1, 9), max_size=3).map(lambda d: list(d.items()))
        case RowType():
            return st.fixed_dictionaries({each.name: values(each.type) for each in of.fields})
        case _:
            return _scalars(of.arrow)


def _scalars(arrow: pa.DataType) -> st.SearchStrategy[Any]:  # noqa: PLR0911  a table of types
    if pa.types.is_boolean(arrow):
        return st.booleans()
    if pa.types.is_integer(arrow):
        return st.integers(-(1 << (arrow.bit_width - 1)), (1 << (arrow.bit_width - 1)) - 1)
    if pa.types.is_floating(arrow):
        return st.floats(allow_nan=False, allow_infinity=False)
    if pa.types.is_string(arrow):
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    if pa.types.is_binary(arrow):
        return st.binary(max_size=6)
    if pa.types.is_decimal(arrow):
        return st.decimals(min_value=-999, max_value=999, places=arrow.scale)
    if pa.types.is_date(arrow):
        return st.dates().map(lambda day: day)
    if pa.types.is_time(arrow):
        return st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
    per_second = {"ms": 10**3, "us": 10**6}[arrow.unit]
    return st.integers(-2_000_000_000 * per_second, 9_000_000_000 * per_second)
