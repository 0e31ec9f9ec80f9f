"""A process that has a table open treats a recreated table of the same name as another table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.catalog import table_cache
from storage_lib.catalog.table_cache import key_of
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.spark.data_source.statement_options import options_of
from storage_lib.spark.data_source.stream_reader import StreamScan, TableStreamReader
from storage_lib.spark.data_source.table_source import DynamicTableSource
from storage_lib.spark.types.spark_schema import struct_of
from storage_lib.spark.versions.stream_api import ReadAllAvailable
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


@pytest.fixture
def make_anew(make_table: Callable[..., DynamicTable]) -> Callable[[DynamicTable], DynamicTable]:
    """Return a function that drops a table and creates one with the same name and columns."""

    def again(table: DynamicTable) -> DynamicTable:
        open_catalog(table.address.warehouse).drop_table(table.name)
        return make_table()

    return again


def reader_of(table: DynamicTable) -> TableStreamReader:
    return TableStreamReader(key_of(table), struct_of(table.schema, row_kind_column="_row_kind"), StreamScan())


def drained(reader: TableStreamReader, offset: dict[str, Any] | None = None) -> tuple[list[int], dict[str, Any]]:
    """Return the ids of all changes from an offset (default: the stream's start), and the offset after them."""
    at, ids = reader.initialOffset() if offset is None else offset, []
    while (end := reader.latestOffset(at, ReadAllAvailable())) != at:
        ids += [
            key
            for partition in reader.partitions(at, end)
            for batch in reader.read(partition)
            for key in batch.column("id").to_pylist()
        ]
        at = end
    return ids, at


def test_a_checkpoint_of_another_table_is_refused(
    make_table: Callable[..., DynamicTable], make_anew: Callable[[DynamicTable], DynamicTable]
) -> None:
    table, other = make_table(), make_table("other")
    table.append(whole_rows(table, {"id": [1]}))
    ids, offset = drained(reader_of(table))
    assert ids == [1]
    assert drained(reader_of(table), offset) == ([], offset)

    with pytest.raises(InvalidInputError, match=r"db\.other: the position is one in another table"):
        drained(reader_of(other), offset)
    with pytest.raises(InvalidInputError, match=r"db\.t: the position is one in another table"):
        drained(reader_of(make_anew(table)), offset)


def test_a_checkpoint_that_does_not_name_its_table_is_gone_on_with(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    table.append(whole_rows(table, {"id": [1]}))
    table.append(whole_rows(table, {"id": [2]}))

    assert drained(reader_of(table), {"snapshot": 1})[0] == [2]


def test_a_running_stream_read_ends_when_its_table_is_dropped(
    make_table: Callable[..., DynamicTable], make_anew: Callable[[DynamicTable], DynamicTable]
) -> None:
    table = make_table()
    table.append(whole_rows(table, {"id": [1]}))
    reader = reader_of(table)
    _, offset = drained(reader)

    make_anew(table).append(whole_rows(table, {"id": [2]}))

    with pytest.raises(NotFoundError, match=r"db\.t was dropped and recreated"):
        drained(reader, offset)
    open_catalog(table.address.warehouse).drop_table(table.name)
    with pytest.raises(NotFoundError, match=r"table db\.t does not exist"):
        drained(reader, offset)


def test_a_task_never_opens_another_table_in_the_place_of_its_own(
    make_table: Callable[..., DynamicTable],
    make_anew: Callable[[DynamicTable], DynamicTable],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = key_of(make_table())
    make_anew(key.table())
    monkeypatch.setattr(table_cache, "_open", {})

    with pytest.raises(NotFoundError, match="recreated"):
        key.table()


def test_reads_and_writes_through_an_old_handle_are_refused(
    make_table: Callable[..., DynamicTable], make_anew: Callable[[DynamicTable], DynamicTable], tmp_path: Path
) -> None:
    table = make_table()
    struct = struct_of(table.schema)
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text('{"id": "query"}')
    source = DynamicTableSource({**options_of(table), "checkpointlocation": str(tmp_path / "checkpoint")})
    again = make_anew(table)

    for attempt in (
        source.schema,
        lambda: source.reader(struct),
        lambda: source.streamReader(struct_of(table.schema, row_kind_column="_row_kind")),
        lambda: source.writer(struct, overwrite=False),
        lambda: source.writer(struct, overwrite=True),
        lambda: source.streamWriter(struct, overwrite=False),
    ):
        with pytest.raises(NotFoundError, match="recreated"):
            attempt()
    assert again.context.leases.holder() is None
    assert again.context.file_store.snapshots.latest_id() is None
