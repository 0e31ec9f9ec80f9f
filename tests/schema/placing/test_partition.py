from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.schema.encoding.java_text import is_blank, java_float
from storage_lib.schema.placing.partition import PartitionCodec, partition_path
from tests.support.schemas import field_of, schema_of

MOMENT = datetime(2024, 5, 14, 1, 2, 3, 456_000)  # noqa: DTZ001
MIDNIGHT = datetime(2024, 5, 14)  # noqa: DTZ001


def path(spelled: str, value: object, *, legacy: bool = False) -> str:
    return partition_path([field_of(spelled, "p")], [value], legacy=legacy)


@pytest.mark.parametrize(
    ("spelled", "value", "directory"),
    [
        ("STRING", "a b/c", "p=a b%2Fc/"),
        ("STRING", "", "p=__DEFAULT_PARTITION__/"),
        ("STRING", " ", "p=__DEFAULT_PARTITION__/"),
        ("STRING", None, "p=__DEFAULT_PARTITION__/"),
        ("INT", 7, "p=7/"),
        ("BOOLEAN", True, "p=true/"),
        ("DATE", date(2024, 5, 14), "p=19857/"),
        ("TIMESTAMP(6)", MOMENT, "p=2024-05-14T01%3A02%3A03.456/"),
        ("DECIMAL(10, 2)", Decimal("1.50"), "p=1.50/"),
        ("DOUBLE", 1.5, "p=1.5/"),
        ("DOUBLE", 1e10, "p=1.0E10/"),
    ],
)
def test_legacy_names_are_those_measured_on_other_writers(spelled: str, value: object, directory: str) -> None:
    assert path(spelled, value, legacy=True) == directory


@pytest.mark.parametrize(
    ("spelled", "value", "legacy", "cast"),
    [
        ("DATE", date(2024, 5, 14), "19857", "2024-05-14"),
        ("DATE", date(1969, 12, 31), "-1", "1969-12-31"),
        ("TIMESTAMP(0)", MIDNIGHT, "2024-05-14T00%3A00", "2024-05-14 00%3A00%3A00"),
        ("TIMESTAMP(3)", MOMENT, "2024-05-14T01%3A02%3A03.456", "2024-05-14 01%3A02%3A03.456"),
        ("TIMESTAMP(6)", MIDNIGHT, "2024-05-14T00%3A00", "2024-05-14 00%3A00%3A00.000000"),
        (
            "TIMESTAMP(6)",
            MOMENT.replace(microsecond=1),
            "2024-05-14T01%3A02%3A03.000001",
            "2024-05-14 01%3A02%3A03.000001",
        ),
        (
            "TIMESTAMP_LTZ(3)",
            MOMENT.replace(tzinfo=UTC),
            "2024-05-14T01%3A02%3A03.456",
            "2024-05-14 01%3A02%3A03.456",
        ),
        ("TIME(0)", time(1, 2, 3), "3723000", "01%3A02%3A03"),
        ("TIME(3)", time(1, 2, 3), "3723000", "01%3A02%3A03.0"),
        ("TIME(3)", time(1, 2, 3, 40_000), "3723040", "01%3A02%3A03.04"),
        ("TIME(3)", time(1, 2, 3, 456_000), "3723456", "01%3A02%3A03.456"),
        ("BIGINT", -5, "-5", "-5"),
        ("DECIMAL(20, 10)", Decimal("0E-10"), "0.0000000000", "0.0000000000"),
        ("FLOAT", 0.10000000149011612, "0.1", "0.1"),
        ("BOOLEAN", False, "false", "false"),
    ],
)
def test_names_follow_the_option(spelled: str, value: object, legacy: str, cast: str) -> None:
    assert path(spelled, value, legacy=True) == f"p={legacy}/"
    assert path(spelled, value) == f"p={cast}/"


def test_every_character_that_paths_or_hive_mind_is_escaped_and_no_other() -> None:
    escaped = "\"#%'*/:=?\\{}[]^\x7f\n\x01"
    plain = "ab ,.;!$&()+-@_~`|<>äß☃𝄞"

    directory = path("STRING", escaped + plain)

    assert directory == "p=%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%7D%5B%5D%5E%7F%0A%01" + plain + "/"


def test_column_names_are_escaped_too_and_values_stand_in_declared_order() -> None:
    schema = schema_of(
        "id BIGINT, a/b STRING, dt DATE", key="id, a/b, dt", partition="dt, a/b", **{"partition.legacy-name": "false"}
    )
    codec = PartitionCodec(schema)

    partition = codec.encode({"a/b": "x", "dt": "2024-05-14"})

    assert codec.path(partition) == "dt=2024-05-14/a%2Fb=x/"
    assert codec.decode(partition) == {"dt": date(2024, 5, 14), "a/b": "x"}
    assert list(codec.decode(partition)) == ["dt", "a/b"]


def test_a_table_without_the_option_is_a_foreign_one_with_legacy_names() -> None:
    foreign = PartitionCodec(schema_of("id BIGINT, dt DATE", key="id, dt", partition="dt"))

    assert foreign.path(foreign.encode({"dt": date(2024, 5, 14)})) == "dt=19857/"


def test_the_name_for_nothing_is_an_option() -> None:
    schema = schema_of("id BIGINT, p STRING", partition="p", **{"partition.default-name": "__NONE__"})

    assert PartitionCodec(schema).path(PartitionCodec(schema).encode({"p": None})) == "p=__NONE__/"


def test_a_table_without_partitions_has_one_without_directory() -> None:
    codec = PartitionCodec(schema_of("id BIGINT", key="id"))

    assert codec.encode({}) == bytes(12)
    assert codec.decode(bytes(12)) == {}
    assert codec.path(bytes(12)) == ""


@pytest.mark.parametrize("values", [{}, {"dt": "2024-05-14", "h": "1"}, {"day": "2024-05-14"}])
def test_a_partition_is_named_by_its_own_columns(values: dict[str, object]) -> None:
    codec = PartitionCodec(schema_of("id BIGINT, dt DATE", key="id, dt", partition="dt"))

    with pytest.raises(InvalidInputError, match=r"\(dt\)"):
        codec.encode(values)


def test_a_value_of_another_type_is_refused_with_column_and_value() -> None:
    codec = PartitionCodec(schema_of("id BIGINT, dt DATE", key="id, dt", partition="dt"))

    with pytest.raises(InvalidInputError, match=r"'yesterday' .*'dt'"):
        codec.encode({"dt": "yesterday"})
    with pytest.raises(InvalidInputError, match="dt"):
        codec.encode({"dt": None})


def test_bytes_that_are_no_partition_are_corrupt() -> None:
    codec = PartitionCodec(schema_of("id BIGINT, dt DATE", key="id, dt", partition="dt"))

    with pytest.raises(CorruptFileError):
        codec.decode(bytes(12))


def test_bytes_have_no_name_as_a_directory() -> None:
    with pytest.raises(InvalidInputError, match="STRING"):
        path("BYTES", b"x")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (123456.789, "123456.789"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-1.5e-300, "-1.5E-300"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_spelled_as_java_does(value: float, text: str) -> None:
    assert java_float(value, single=False) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (3.4028234663852886e38, "3.4028235E38"), (1.5, "1.5"), (16777216.0, "1.6777216E7")],
)
def test_floats_are_spelled_as_java_does(value: float, text: str) -> None:
    assert java_float(value, single=True) == text


def test_blank_is_what_java_takes_for_white_space() -> None:
    assert is_blank("")
    assert is_blank(" \t\n\u2003")
    assert not is_blank("\u00a0")
    assert not is_blank(" x ")
