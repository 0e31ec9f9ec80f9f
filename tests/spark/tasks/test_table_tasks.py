"""A write in its tasks and on its driver, called as by Spark but without Spark."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.datasource import WriterCommitMessage

pytest.importorskip("pyspark")


from storage_lib.catalog import table_cache
from storage_lib.catalog.table_cache import key_of, table_at
from storage_lib.errors import InvalidInputError, LeaseLostError
from storage_lib.spark.data_source.batch_writer import TableBatchWriter
from storage_lib.spark.data_source.checkpoint_identity import query_id_of
from storage_lib.spark.data_source.stream_writer import TableStreamWriter
from storage_lib.spark.data_source.table_source import DynamicTableSource
from storage_lib.spark.tasks.driver_lease import give_up
from storage_lib.spark.types.spark_schema import struct_of
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from storage_lib.table.protocol.write_context import OverwriteScope
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def rows(*ids: int | None) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"id": pa.array(ids, pa.int64())})


def writer_of(
    table: DynamicTable, options: Mapping[str, str] | None = None, *, overwrite: bool = False
) -> TableBatchWriter:
    source = DynamicTableSource({"path": table.location, **(options or {})})
    writer = source.writer(struct_of(table.schema, ["id"]), overwrite=overwrite)
    assert isinstance(writer, TableBatchWriter)
    return writer


def stream_writers(table: DynamicTable, **options: str) -> tuple[TableStreamWriter, TableStreamWriter]:
    """Return the writer that plans a micro-batch, and the one that commits it in another process."""
    source = DynamicTableSource({"path": table.location, **options})
    struct = struct_of(table.schema, ["id"])
    elsewhere: DynamicTableSource = pickle.loads(pickle.dumps(source))  # noqa: S301  as Spark does
    plan, commit = (each.streamWriter(struct, overwrite=False) for each in (source, elsewhere))
    assert isinstance(plan, TableStreamWriter)
    assert isinstance(commit, TableStreamWriter)
    return plan, commit


def files_of(table: DynamicTable) -> list[Path]:
    return list(Path(table.location).rglob("*.parquet"))


def ids_of(table: DynamicTable) -> list[int]:
    return sorted(table.to_arrow(columns=["id"]).column("id").to_pylist())


def test_the_options_of_a_write_reach_its_commit(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    said = {"commit-user": "job", "commit-identifier": "7", "change-tracking": "false"}
    writer = writer_of(table, said)
    writer.commit([writer.write(rows(1))])
    again = writer_of(table, said)
    again.commit([again.write(rows(2))])

    snapshot = table.context.file_store.snapshots.latest()

    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_user, snapshot.commit_identifier) == (1, "job", 7)
    part = SnapshotLogProperties.of_snapshot(snapshot)
    assert part is not None
    assert not part.tracked


def test_a_failed_task_leaves_no_file(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table(write_buffer_size="1 kb")
    writer = writer_of(table)

    with pytest.raises(InvalidInputError, match="primary key"):
        writer.write(batch for part in (range(5000), [None]) for batch in rows(*part))

    assert files_of(table) == []


def test_a_task_whose_lease_is_over_undoes_itself(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    writer = writer_of(table)
    writer.abort([None])
    table.append(whole_rows(table, {"id": [1]}))
    live = files_of(table)

    with pytest.raises(LeaseLostError):
        writer.write(rows(2))

    assert files_of(table) == live


def test_giving_up_deletes_what_finished_tasks_wrote_unless_a_commit_was_begun(
    make_table: Callable[..., DynamicTable],
) -> None:
    table = make_table()
    writer = writer_of(table)
    done = writer.write(rows(1))
    assert len(files_of(table)) == 1

    writer.abort([done])
    assert len(files_of(table)) == 1, "the commit undoes itself, or its outcome is unknown"
    writer.abort([done, None])

    assert files_of(table) == []
    assert table.context.leases.holder() is None


def test_giving_up_leaves_the_lease_of_another_writer_alone(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    other = table.new_write().begin(commit_user="other")

    give_up(table, "me", [])

    holder = table.context.leases.holder()
    assert holder is not None
    assert holder.startswith("other/")
    table.new_write().abort(other, [])


def test_two_tasks_of_an_overwrite_with_one_bucket_are_refused_and_those_of_an_append_are_not(
    make_table: Callable[..., DynamicTable],
) -> None:
    table = make_table()
    append = writer_of(table)
    append.commit([append.write(rows(1)), append.write(rows(2))])
    live = sorted(files_of(table))
    overwrite = writer_of(table, overwrite=True)
    done: list[WriterCommitMessage | None] = [overwrite.write(rows(3)), overwrite.write(rows(4))]

    with pytest.raises(InvalidInputError, match="two tasks of one overwrite"):
        overwrite.commit(done)

    assert ids_of(table) == [1, 2]
    assert sorted(files_of(table)) == live


def test_a_micro_batch_is_committed_once_by_the_query_in_its_checkpoint(
    make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    table = make_table()
    (tmp_path / "metadata").write_text('{"id": "query"}')
    for batch_id, key in ((0, 1), (1, 2), (1, 3)):
        plan, commit = stream_writers(table, checkpointlocation=f"file://{tmp_path}/")
        commit.commit([plan.write(rows(key))], batch_id)

    assert ids_of(table) == [1, 2]
    snapshot = table.context.file_store.snapshots.latest()
    assert snapshot is not None
    assert (snapshot.commit_user, snapshot.commit_identifier) == ("query", 1)
    assert table.context.leases.holder() is None
    assert len(files_of(table)) == 2, "the repetition left nothing behind"


def test_a_micro_batch_without_tasks_releases_its_lease(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    _, commit = stream_writers(table, **{"commit-user": "me"})
    assert table.context.leases.holder() is not None

    commit.commit([], 0)

    assert table.context.leases.holder() is None


def test_only_the_writer_that_planned_a_micro_batch_can_write_it(make_table: Callable[..., DynamicTable]) -> None:
    plan, commit = stream_writers(make_table(), **{"commit-user": "me"})

    with pytest.raises(RuntimeError, match="only the one that planned it"):
        commit.write(rows(1))
    plan.abort([None], 0)


def test_a_stream_without_an_identity_is_refused(make_table: Callable[..., DynamicTable], tmp_path: Path) -> None:
    table = make_table()

    with pytest.raises(InvalidInputError, match="checkpointLocation"):
        stream_writers(table)
    with pytest.raises(InvalidInputError, match=r"write_stream\(\.\.\.\)"):
        query_id_of(str(tmp_path / "nothing"), {})
    assert table.context.leases.holder() is None


def test_a_process_keeps_its_tables_open_but_not_all_of_them(
    make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_cache, "_open", {})
    monkeypatch.setattr(table_cache, "_OPEN_MAX", 2)
    first, second, third = (make_table(name) for name in ("a", "b", "c"))

    assert table_at(first.address) is table_at(first.address) is key_of(first).table()
    table_at(second.address)
    table_at(third.address)

    assert list(table_cache._open) == [key_of(second), key_of(third)]


def test_the_lease_of_a_write_is_kept_alive_from_its_driver(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()

    writer = writer_of(table)

    lease = writer._write_context.lease
    assert lease is not None
    assert f"lease-{lease.number}" in {thread.name for thread in threading.enumerate()}
    writer.abort([])


def test_an_overwrite_needs_no_lease(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()

    writer = writer_of(table, {"overwrite-partition": "{}"}, overwrite=True)

    assert writer._write_context.overwrite == OverwriteScope.of({})
    assert table.context.leases.holder() is None
