"""Names of copied files."""

from __future__ import annotations

import pytest

from storage_lib.file_store.committing.file_copies import extension_of


@pytest.mark.parametrize(
    ("file_name", "extension"),
    [
        ("data-5b0f0a52-7a0c-4d2c-9f0e-6e4a1f0a1b2c-0.parquet", "parquet"),
        ("data-5b0f0a52-7a0c-4d2c-9f0e-6e4a1f0a1b2c-12.parquet-counts", "parquet-counts"),
        ("data-5b0f0a52-7a0c-4d2c-9f0e-6e4a1f0a1b2c-0.orc-counts", "orc-counts"),
        ("my.prefix-1.x-5b0f0a52-0.snappy.parquet", "snappy.parquet"),
        ("named-by-hand.avro", "avro"),
    ],
)
def test_the_extension_is_what_follows_the_number(file_name: str, extension: str) -> None:
    assert extension_of(file_name) == extension
