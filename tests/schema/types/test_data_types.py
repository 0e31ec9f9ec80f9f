from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.data_types import DataType, TypeRoot, data_type_of_arrow, parse_data_type
from storage_lib.schema.types.variant import VARIANT_ARROW

SPELLINGS = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME(0)": pa.time32("ms"),
    "TIME(3)": pa.time32("ms"),
    "CHAR(5)": pa.string(),
    "VARCHAR(5)": pa.string(),
    "STRING": pa.string(),
    "BINARY(5)": pa.binary(),
    "VARBINARY(5)": pa.binary(),
    "BYTES": pa.binary(),
    "VARIANT": VARIANT_ARROW,
    "DECIMAL(10, 2)": pa.decimal128(10, 2),
    "DECIMAL(38, 38)": pa.decimal128(38, 38),
    "TIMESTAMP(0)": pa.timestamp("ms"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(9)": pa.timestamp("ns"),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": pa.timestamp("ms", tz="UTC"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": pa.timestamp("ns", tz="UTC"),
}


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize("suffix", ["", " NOT NULL"])
def test_a_type_is_spelled_as_it_was_read(spelled: str, suffix: str) -> None:
    parsed = parse_data_type(spelled + suffix)

    assert str(parsed) == spelled + suffix
    assert parsed.nullable is not bool(suffix)
    assert parsed.arrow == SPELLINGS[spelled]


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("  int ", "INT"),
        ("Integer\tnot   null", "INT NOT NULL"),
        ("BIGINT NULL", "BIGINT"),
        ("LONG", "BIGINT"),
        ("real", "FLOAT"),
        ("double precision not null", "DOUBLE NOT NULL"),
        ("TEXT", "STRING"),
        ("VARCHAR(2147483647)", "STRING"),
        ("VARBINARY(2147483647)", "BYTES"),
        ("VARCHAR", "VARCHAR(1)"),
        ("CHAR", "CHAR(1)"),
        ("BINARY", "BINARY(1)"),
        ("CHARACTER VARYING( 7 )", "VARCHAR(7)"),
        ("decimal(5,3)", "DECIMAL(5, 3)"),
        ("NUMERIC(5)", "DECIMAL(5, 0)"),
        ("DEC", "DECIMAL(10, 0)"),
        ("TIME", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE NOT NULL", "TIMESTAMP(3) NOT NULL"),
        ("TIMESTAMP_LTZ(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("timestamp_ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP_NTZ(3)", "TIMESTAMP(3)"),
        ("TIMESTAMP(3)  WITH  LOCAL  TIME  ZONE  NOT  NULL", "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"),
    ],
)
def test_other_spellings_mean_the_same(spelled: str, canonical: str) -> None:
    assert str(parse_data_type(spelled)) == canonical
    assert parse_data_type(spelled) == parse_data_type(canonical)


@pytest.mark.parametrize(
    "spelled",
    [
        "",
        "ARRAY<INT>",
        "MAP<STRING, INT>",
        "ROW<a INT>",
        "VARIANT(3)",
        "INTERVAL",
        "INT(5)",
        "STRING(5)",
        "DECIMAL(10, 2, 1)",
        "TIMESTAMP(3, 1)",
        "TIMESTAMP WITH TIME ZONE",
        "DATE WITH LOCAL TIME ZONE",
        "TIME(3) WITH LOCAL TIME ZONE",
        "INT NOT",
        "INT NULLABLE",
        "INT; DROP TABLE t",
    ],
)
def test_what_no_column_can_be_is_refused_with_what_it_can(spelled: str) -> None:
    with pytest.raises(InvalidInputError, match="DECIMAL") as refused:
        parse_data_type(spelled)

    assert repr(spelled) in str(refused.value)


@pytest.mark.parametrize(
    "spelled",
    [
        "DECIMAL(0)",
        "DECIMAL(39)",
        "DECIMAL(5, 6)",
        "TIMESTAMP(10)",
        "TIME(10)",
        "CHAR(0)",
        "VARCHAR(0)",
        "VARCHAR(2147483648)",
    ],
)
def test_a_length_or_precision_out_of_range_is_refused(spelled: str) -> None:
    with pytest.raises(InvalidInputError, match=spelled.partition("(")[0]):
        parse_data_type(spelled)


@pytest.mark.parametrize(
    ("arrow", "spelled"),
    [
        (pa.uint8(), "SMALLINT"),
        (pa.uint16(), "INT"),
        (pa.uint32(), "BIGINT"),
        (pa.uint64(), "DECIMAL(20, 0)"),
        (pa.float16(), "FLOAT"),
        (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"),
        (pa.dictionary(pa.int32(), pa.string()), "STRING"),
        (pa.large_binary(), "BYTES"),
        (pa.binary_view(), "BYTES"),
        (pa.binary(4), "BINARY(4)"),
        (pa.date64(), "DATE"),
        (pa.time32("s"), "TIME(0)"),
        (pa.time64("us"), "TIME(3)"),
        (pa.timestamp("s"), "TIMESTAMP(0)"),
        (pa.timestamp("ns"), "TIMESTAMP(9)"),
        (pa.timestamp("us", tz="Europe/Berlin"), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        (pa.decimal256(38, 2), "DECIMAL(38, 2)"),
    ],
)
def test_arrow_types_without_a_twin_become_the_nearest_that_holds_them(arrow: pa.DataType, spelled: str) -> None:
    assert str(data_type_of_arrow(arrow)) == spelled
    assert str(data_type_of_arrow(arrow, nullable=False)) == f"{spelled} NOT NULL"


@pytest.mark.parametrize("spelled", [spelled for spelled in SPELLINGS if "(5)" not in spelled and "(0)" not in spelled])
def test_an_arrow_twin_leads_back_to_its_type(spelled: str) -> None:
    assert str(data_type_of_arrow(SPELLINGS[spelled])) == spelled


@pytest.mark.parametrize(
    "arrow",
    [
        pa.list_(pa.int32()),
        pa.struct([("a", pa.int32())]),
        pa.null(),
        pa.duration("s"),
        pa.decimal256(50, 2),
        pa.decimal128(5, -2),
    ],
)
def test_arrow_types_that_no_column_can_be_are_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="can't be a column"):
        data_type_of_arrow(arrow)


def test_types_are_values() -> None:
    assert DataType(TypeRoot.VARCHAR) == parse_data_type("STRING")
    assert DataType(TypeRoot.DECIMAL) == parse_data_type("DECIMAL(10, 0)")
    assert len({parse_data_type("INT"), parse_data_type("INTEGER"), parse_data_type("INT NOT NULL")}) == 2
    assert pickle.loads(pickle.dumps(parse_data_type("TIMESTAMP(3)"))) == parse_data_type("TIMESTAMP(3)")  # noqa: S301
    assert parse_data_type("INT").not_null().with_nullable(nullable=True) == parse_data_type("INT")


@pytest.mark.parametrize("spelled", [*SPELLINGS, "TIMESTAMP_LTZ(3) NOT NULL"])
def test_parsing_a_spelling_of_its_own_changes_nothing(spelled: str) -> None:
    once = parse_data_type(spelled)

    assert parse_data_type(str(once)) == once
