"""A worker is killed after its task's commit and before Airflow has recorded it: the retry emits the commit's event."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import BaseOperator

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.drop_partitions import DropPartitionsOperator
from dynamic_table.operators.drop_table import DropTableOperator
from dynamic_table.operators.ingest_topic import IngestOperator
from dynamic_table.operators.process_changes import ProcessChangesOperator
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.publish_branch import PublishBranchOperator
from dynamic_table.operators.refresh_materialized_table import RefreshMaterializedTableOperator
from dynamic_table.operators.reingest_rejected import ReingestRejectedOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.rollback_table import RollbackTableOperator
from storage_lib import Catalog, open_catalog
from storage_lib.errors import InvalidInputError
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from storage_lib.schema.types.rejected_schema import REJECTED_SCHEMA
from storage_lib.table.protocol.source_offsets import SourceRange
from tests.support.task_context import DictStore, announced, task_context

ON_RETRY: dict[str, Any] = {"rows": pa.table({"day": ["a"], "id": [9]})}
"""What the functions of the tasks return."""


def rows_of_day(partition: dict[str, str]) -> pa.Table:
    rows: pa.Table = ON_RETRY["rows"]
    return rows.set_column(0, "day", pa.array([partition["day"]] * rows.num_rows, pa.string()))


def changed_rows(changes: pa.RecordBatchReader) -> pa.Table:
    return pa.table({"id": [changes.read_all().num_rows]})


@pytest.fixture
def catalog(warehouse: Path) -> Catalog:
    """Return a catalog with the table ``db.t`` of two days, its branch ``b``, and ``db.sums``."""
    catalog = open_catalog(str(warehouse), {"log.system": "none"})
    table = catalog.create_table(
        "db.t", {"day": "STRING", "id": "BIGINT"}, primary_key=["day", "id"], partition_by=["day"],
        options={"write-only": "true"},
    )  # fmt: skip
    table.append([{"day": "a", "id": 1}, {"day": "b", "id": 1}])
    table.append([{"day": "a", "id": 2}])
    table.branches.create("b")
    table.branches.open("b").append([{"day": "b", "id": 7}])
    catalog.create_table("db.sums", {"id": "BIGINT"}, primary_key=["id"])
    return catalog


def tried(
    make: Callable[[], BaseOperator], store: DictStore, *, max_tries: int = 5
) -> tuple[dict[str, Any], list[Any]]:
    context = task_context(task := make(), store=store, max_tries=max_tries)
    result: dict[str, Any] = task.execute(context)
    return result, announced(context)


TASKS: dict[str, Callable[[], BaseOperator]] = {
    "drop before": lambda: DropPartitionsOperator(task_id="x", table="db.t", before={"day": "b"}),
    "drop some": lambda: DropPartitionsOperator(task_id="x", table="db.t", partitions=[{"day": "a"}]),
    "drop approved": lambda: DropPartitionsOperator(task_id="x", table="db.t", approved=[{"day": "a"}]),
    "compact": lambda: CompactTableOperator(task_id="x", table="db.t", engine="local"),
    "reprocess": lambda: ReprocessPartitionsOperator(
        task_id="x", table="db.t", partitions=[{"day": "a"}, {"day": "b"}], engine="local",
        rows="tests.plugins.operators.test_lost_events:rows_of_day",
    ),
    "publish": lambda: PublishBranchOperator(task_id="x", table="db.t", branch="b"),
    "rollback": lambda: RollbackTableOperator(task_id="x", table="db.t", snapshot_id=1),
    "provision": lambda: ProvisionTableOperator(task_id="x", table="db.new", columns={"id": "BIGINT"}),
    "process": lambda: ProcessChangesOperator(
        task_id="x", table="db.t", into="db.sums", start="2020-01-01T00:00:00+00:00", end="2020-01-02T00:00:00+00:00",
        process="tests.plugins.operators.test_lost_events:changed_rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("meanwhile", [False, True], ids=["nothing meanwhile", "another commit meanwhile"])
@pytest.mark.parametrize("task", TASKS)
def test_a_retry_emits_the_event_of_the_first_tries_commit(catalog: Catalog, task: str, *, meanwhile: bool) -> None:
    store = DictStore()
    first, [event] = tried(TASKS[task], store)
    table = catalog.load_table("db.t")
    if meanwhile:
        table.append([{"day": "c", "id": 3}])
    newest = {name: catalog.load_table(name).inspect.latest_snapshot_id() for name in catalog.list_tables("db")}

    again, [told] = tried(TASKS[task], store)

    assert told == event
    assert again["version"] == first["version"]
    assert {name: catalog.load_table(name).inspect.latest_snapshot_id() for name in newest} == newest


def test_a_cleared_task_does_its_work_again(catalog: Catalog) -> None:
    store = DictStore()
    tried(TASKS["drop before"], store)
    catalog.load_table("db.t").append([{"day": "a", "id": 1}])

    again, events = tried(TASKS["drop before"], store, max_tries=9)

    assert [event["partitions"] for event in events] == [[{"day": "a"}]]
    assert again["version"] == catalog.load_table("db.t").inspect.latest_snapshot_id()


def test_a_retried_reprocessing_asks_its_source_only_for_what_is_missing(catalog: Catalog) -> None:
    store = DictStore()
    first, _ = tried(TASKS["reprocess"], store)
    kept = ON_RETRY["rows"]
    ON_RETRY["rows"] = kept.slice(0, 0)  # would be an error
    try:
        again, _ = tried(TASKS["reprocess"], store)
    finally:
        ON_RETRY["rows"] = kept

    assert (again["rows"], again["partitions"]) == (first["rows"], first["partitions"]) == (
        2, [{"day": "a"}, {"day": "b"}],
    )  # fmt: skip


def test_a_retried_refresh_reports_that_of_the_first_try(catalog: Catalog) -> None:
    definition = MaterializedTableDefinition(
        query="SELECT day, count(*) AS n FROM t GROUP BY day", database="db", sources=("db.t",)
    )
    catalog.create_table(
        "db.counts", {"day": "STRING", "n": "BIGINT"}, primary_key=["day"], options=definition.to_options()
    )
    store = DictStore()

    def refresh() -> BaseOperator:
        return RefreshMaterializedTableOperator(task_id="x", table="db.counts")

    first, [event] = tried(refresh, store)
    catalog.load_table("db.t").append([{"day": "c", "id": 3}])
    again, [told] = tried(refresh, store)
    later, [next_event] = tried(refresh, store, max_tries=9)

    assert (first["version"], again["version"], later["version"]) == (1, 1, 2)
    assert (told["version"], told["op"], told["uri"]) == (event["version"], "refresh", event["uri"])
    assert (again["mode"], again["reason"]) == ("none", "an earlier try of the task has refreshed the table")
    assert again["rows_written"] == first["rows_written"] == 2
    assert next_event["version"] == 2
    assert json.loads(json.dumps(again)) == again


def test_a_retried_ingestion_reports_the_last_commit_of_its_source(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.load_table("db.t")
    ends = [LogOffsets({0: 5}), LogOffsets({0: 9})]

    def ingest(_table: Any, **_: Any) -> Any:
        snapshot = None
        for start, end in zip([None, *ends], ends, strict=False):
            if table.inspect.source_offsets("changes") == start:
                rows = [{"day": "d", "id": end.of(0)}]
                snapshot = table.append(rows, source=SourceRange(source="changes", start=start, end=end))
        return SimpleNamespace(snapshot=snapshot, row_count=0, rejected_count=0, skipped_count=0)

    monkeypatch.setattr("storage_lib.ingest", ingest)
    store = DictStore()

    def task() -> BaseOperator:
        return IngestOperator(task_id="x", table="db.t", topic="changes")

    first, [event] = tried(task, store)
    table.append([{"day": "c", "id": 3}])
    again, [told] = tried(task, store)
    nothing, none = tried(task, DictStore())

    assert (first["version"], again["version"], told) == (4, 4, event)
    assert (nothing["version"], none) == (None, [])


def test_a_retried_reingestion_reports_the_commit_of_its_first_try(catalog: Catalog) -> None:
    table, store = catalog.load_table("db.t"), DictStore()
    value = b'{"before":null,"after":{"day":"e","id":5},"op":"c"}'
    record = {"source": "s", "topic": "s", "partition": 0, "offset": 0, "value": value, "reason": "too long"}
    table.append(table.arrow_schema.empty_table(), rejected=pa.Table.from_pylist([record], schema=REJECTED_SCHEMA))

    def task() -> BaseOperator:
        return ReingestRejectedOperator(task_id="x", table="db.t", fixes={"id": "id + 1"})

    first, [event] = tried(task, store)
    again, [told] = tried(task, store)

    assert (first["rows"], first["records"], first["remaining"]) == (1, 1, 0)
    assert (again["version"], told["version"]) == (first["version"], event["version"])
    assert {"day": "e", "id": 6} in table.to_arrow().to_pylist()
    assert table.inspect.rejected_count() == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"fixes": {"id": "read_csv('/etc/passwd')"}}, "may not be called"),
        ({"fixes": "None of them"}, "fixes is"),
        ({"on_stored": "perhaps"}, "on_stored is"),
        ({"options": {"log.schema-registry.url": "http://inside:80"}}, "neither the connection's"),
    ],
)
def test_a_reingestion_of_a_form_reaches_and_calls_nothing_that_is_not_listed(
    catalog: Catalog, arguments: dict[str, Any], problem: str
) -> None:
    before = catalog.load_table("db.t").inspect.latest_snapshot_id()
    task = ReingestRejectedOperator(task_id="x", table="db.t", **arguments)

    with pytest.raises(InvalidInputError, match=problem):
        task.execute(task_context(task))

    assert catalog.load_table("db.t").inspect.latest_snapshot_id() == before


def test_a_retried_drop_of_a_table_says_that_it_existed(catalog: Catalog) -> None:
    store = DictStore()

    def drop() -> BaseOperator:
        return DropTableOperator(task_id="x", table="db.t", if_exists=False)

    results = [drop().execute(task_context(drop(), store=store)) for _ in range(2)]

    assert [result["existed"] for result in results] == [True, True]
    assert not catalog.table_exists("db.t")
