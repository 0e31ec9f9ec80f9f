"""How often operations read schemas and the earliest snapshot from storage: not once per bucket, nor needlessly."""

from __future__ import annotations

from storage_lib import DynamicTable
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import content, orders, rows

PARTITIONS = ("a", "b", "c")


def _counted(table: DynamicTable) -> tuple[DynamicTable, FaultyFileIO]:
    storage = FaultyFileIO(table.environment.file_io)
    return reopened_in(storage, table, names="counted"), storage


def _calls(storage: FaultyFileIO, part: str) -> list[tuple[str, str]]:
    return [(act, path.rpartition("/")[2]) for act, path in storage.calls if part in path]


def test_a_compaction_of_many_buckets_lists_the_schemas_once_to_plan_and_once_to_run() -> None:
    table = orders(None, **{"write-only": "true"})
    for n in range(2):
        for partition in PARTITIONS:
            table.append(rows(f"+I {partition} 1 {n}"))
    counted, storage = _counted(table)

    assert counted.compact() is not None

    # The commit reads the schema to check that the table was not dropped in the meantime.
    assert _calls(storage, "/schema") == [("list_directory", "schema")] * 2 + [("read_bytes", "schema-0")]
    assert content(table) == {f"{partition} 1 1" for partition in PARTITIONS}


def test_a_writer_reads_the_snapshot_before_its_own_once_after_it_has_created_it() -> None:
    table = orders(None, **{"write-only": "true"})
    table.append(rows("+I a 1 1"))
    counted, storage = _counted(table)
    counted.append(rows("+I a 1 2"))
    before = len(storage.calls)

    counted.append(rows("+I a 1 3"))

    calls = [(operation, path.rpartition("/")[2]) for operation, path in storage.calls[before:]]
    assert calls.count(("read_bytes", "snapshot-2")) == 1
    assert calls.index(("create_if_absent", "snapshot-3")) < calls.index(("read_bytes", "snapshot-2"))
    assert not [name for _, name in calls if name == "EARLIEST"]
    assert content(table) == {"a 1 3"}
