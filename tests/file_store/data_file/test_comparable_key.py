"""Serialized keys and their order."""

from __future__ import annotations

import pickle

import pytest

from storage_lib.file_store.data_file.comparable_key import comparable_keys
from storage_lib.schema.encoding.binary_row import encode_row
from storage_lib.schema.types.data_types import parse_data_type

INTEGER = (parse_data_type("BIGINT"),)
FLOATING = (parse_data_type("DOUBLE"),)
TEXT = (parse_data_type("STRING"), parse_data_type("INT"))


def test_the_same_bytes_compare_by_the_type_of_the_key() -> None:
    key = encode_row([-1.5], FLOATING)
    as_integer, as_floating = comparable_keys(INTEGER), comparable_keys(FLOATING)
    assert as_integer(key) != as_floating(key)
    assert as_floating(key) < as_floating(encode_row([-0.0], FLOATING)) < as_floating(encode_row([0.0], FLOATING))
    assert as_integer(key) == as_integer(bytes(key))


@pytest.mark.parametrize("length", [1, 255, 256, 10_000])
def test_keys_of_any_length_compare_column_by_column(length: int) -> None:
    comparable = comparable_keys(TEXT)
    rows = [("a" * length, 2), ("a" * length + "b", -1), ("b" * length, 0)]
    keys = [comparable(encode_row(row, TEXT)) for row in rows]
    assert keys == sorted(keys) == rows


def test_the_comparison_can_be_sent_to_another_process() -> None:
    key = encode_row([7], INTEGER)
    assert pickle.loads(pickle.dumps(comparable_keys(INTEGER)))(key) == comparable_keys(INTEGER)(key) == (7,)  # noqa: S301
