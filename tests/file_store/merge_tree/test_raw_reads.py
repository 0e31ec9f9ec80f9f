"""Rows of older runs outside the key ranges of fresh files are read without a merge."""

from __future__ import annotations

import pytest

from storage_lib.file_store.read import FileStoreRead
from tests.support.counting_reader import CountingReader
from tests.support.fake_environment import fake_environment
from tests.support.stored_table import StoredTable, orders_schema

MERGED = ("id", "item")


def _table_with_one_fresh_key() -> StoredTable:
    """Create ten files in one run of the last level, ids 0 to 99, and a fresh file with id 42."""
    table = StoredTable(orders_schema({"bucket": "1", "target-file-size": "1 b"}), fake_environment())
    for start in range(0, 100, 10):
        table.append([("a", key, "old") for key in range(start, start + 10)])
    table.compact()
    assert table.files() == ["0/5/10"] * 10
    table.append([("a", 42, "new")])
    return table


def _columns_read(
    table: StoredTable, monkeypatch: pytest.MonkeyPatch, target_size: int | None
) -> list[tuple[str, ...]]:
    readers: list[CountingReader] = []
    reader_of = FileStoreRead.reader

    def counted(read: FileStoreRead, *bucket: object, **more: object) -> CountingReader:
        readers.append(CountingReader(reader_of(read, *bucket, **more)))  # type: ignore[arg-type]
        return readers[-1]

    monkeypatch.setattr(FileStoreRead, "reader", counted)
    rows = table.rows(columns=["item"], target_size=target_size)
    assert rows == [("new",)] + [("old",)] * 99
    return [columns for reader in readers for columns in reader.columns_asked]


@pytest.mark.parametrize("target_size", [None, 1], ids=["one split", "a split a section"])
def test_keys_are_read_only_where_a_fresh_file_shares_them(
    monkeypatch: pytest.MonkeyPatch, target_size: int | None
) -> None:
    asked = _columns_read(_table_with_one_fresh_key(), monkeypatch, target_size)

    assert sorted(asked) == [MERGED, MERGED] + [("item",)] * 9


def test_nothing_is_merged_in_a_compacted_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = StoredTable(orders_schema({"bucket": "1"}), fake_environment())
    for _ in range(3):
        table.append([("a", key, "old") for key in range(99)] + [("a", 200, "new")])
    table.compact()

    assert _columns_read(table, monkeypatch, None) == [("item",)]
