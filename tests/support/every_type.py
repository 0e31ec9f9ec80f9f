"""Tables with a column of every scalar type, and rows for them; strategies for the codecs' property tests."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import DataType, parse_data_type

EVERY_TYPE = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME(0)",
    "TIME(3)",
    "CHAR(3)",
    "VARCHAR(20)",
    "STRING",
    "BINARY(3)",
    "VARBINARY(20)",
    "BYTES",
    "DECIMAL(1, 0)",
    "DECIMAL(10, 2)",
    "DECIMAL(18, 18)",
    "DECIMAL(38, 5)",
    "TIMESTAMP(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP(9)",
    "TIMESTAMP_LTZ(3)",
    "TIMESTAMP_LTZ(6)",
    "TIMESTAMP_LTZ(9)",
)
_INT_LIMITS = {pa.int8(): 1 << 7, pa.int16(): 1 << 15, pa.int32(): 1 << 31, pa.int64(): 1 << 63}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NANOS_MAX = 9_223_372_036 * 10**9
_WIDE = decimal.Context(prec=60)
_UNITS_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_MIN = int((dt.datetime(1, 1, 2, tzinfo=dt.UTC) - _EPOCH).total_seconds())
_SECONDS_MAX = int((dt.datetime(9999, 12, 30, tzinfo=dt.UTC) - _EPOCH).total_seconds())
_NASTY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["", "NaN", '"NaN"', '{"a":null}null', "}\n{", '","op":"d"}', "\\", "\u2028\x00\x7f", "😀"]),
)


def arrays(data_type: DataType, count: int) -> st.SearchStrategy[pa.Array]:
    """Generate arrays of that length, with nulls if the type is nullable."""
    value = _values(data_type.arrow)
    return st.lists(value if not data_type.nullable else st.none() | value, min_size=count, max_size=count).map(
        lambda values: _array(values, data_type.arrow)
    )


@st.composite
def tables(draw: st.DrawFn, types: Sequence[str] = EVERY_TYPE) -> tuple[TableSchema, pa.RecordBatch]:
    """Generate a schema with the key ``id`` and up to five columns of any type, and rows for it."""
    chosen = [parse_data_type(draw(st.sampled_from(types))) for _ in range(draw(st.integers(1, 5)))]
    names = draw(st.lists(_column_names(), min_size=len(chosen), max_size=len(chosen), unique=True))
    columns = [("id", parse_data_type("BIGINT")), *zip(names, chosen, strict=True)]
    schema = new_table_schema(columns, primary_keys=("id",), options={"bucket": "1"}, time_millis=0)
    count = draw(st.integers(0, 6))
    rows = pa.RecordBatch.from_arrays(
        [draw(arrays(each.type, count)) for each in schema.fields], schema=schema.arrow_schema
    )
    return schema, rows


def same_rows(left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
    """Compare rows; NaN equals NaN, and 0.0 differs from -0.0."""
    return left.schema == right.schema and [
        [_canonical(value) for value in column.to_pylist()] for column in _comparable(left)
    ] == [[_canonical(value) for value in column.to_pylist()] for column in _comparable(right)]


def _comparable(rows: pa.RecordBatch) -> list[pa.Array]:
    # Python's datetime has no nanoseconds.
    return [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in rows.columns]


def _canonical(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return value


def _column_names() -> st.SearchStrategy[str]:
    return st.sampled_from(
        ["a", "b", "Ünï cödé", 'quo"te', "back\\slash", "do$llar ${1}", "line\nfeed", "before", "op", "x.y"]
    )


def _array(values: list[object], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(arrow) or pa.types.is_time(arrow) or pa.types.is_date(arrow):
        integers = pa.int64() if pa.types.is_timestamp(arrow) else pa.int32()
        return pa.array(values, integers).cast(arrow)
    return pa.array(values, arrow)


def _values(arrow: pa.DataType) -> st.SearchStrategy[object]:  # noqa: PLR0911  a table of types
    if pa.types.is_boolean(arrow):
        return st.booleans()
    if arrow in _INT_LIMITS:
        return st.integers(-_INT_LIMITS[arrow], _INT_LIMITS[arrow] - 1)
    if pa.types.is_floating(arrow):
        return st.floats(width=arrow.bit_width)
    if pa.types.is_string(arrow):
        return _NASTY_TEXT
    if pa.types.is_binary(arrow):
        return st.binary(max_size=20)
    if pa.types.is_decimal(arrow):
        limit = 10**arrow.precision - 1
        return st.integers(-limit, limit).map(lambda unscaled: _WIDE.scaleb(decimal.Decimal(unscaled), -arrow.scale))
    if pa.types.is_date(arrow):
        return st.integers(-719_162, 2_932_896)
    if pa.types.is_time(arrow):
        return st.integers(0, 86_399_999)
    per_second = _UNITS_PER_SECOND[arrow.unit]
    return st.integers(max(-_NANOS_MAX, _SECONDS_MIN * per_second), min(_NANOS_MAX, _SECONDS_MAX * per_second))
