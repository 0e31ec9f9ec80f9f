"""An operator that is ended during its work leaves nothing behind: no file, no lease, no process."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dynamic_table import operators
from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.table_operator import CatalogOperator
from dynamic_table.versions.sdk_exceptions import AirflowTaskTimeout
from storage_lib import open_catalog
from storage_lib.errors import NotFoundError
from storage_lib.schema.types.rejected_schema import REJECTED_SCHEMA
from tests.support.ended_operator import ENDED, KINDS, run_until_ended
from tests.support.processes import lives
from tests.support.spark_topics import produce
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from local_kafka import LocalKafka
    from storage_lib import Catalog, DynamicTable

ROWS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
# Operators that only read or set options; sinks and refreshers have their own tests, and so does a refresh that is
# killed (tests/spark/materialized).
OTHERS = {
    "ApproveDropOperator",
    "AwaitStreamChangesOperator",
    "DetachedJobOperator",
    "EngineOperator",
    "ListCompactionsOperator",
    "ListMaterializedTablesOperator",
    "ListTablesInNeedOperator",
    "ListTablesOperator",
    "PartitionDropOperator",
    "ReadStreamsOperator",
    "RefreshMaterializedTableOperator",
    "RefresherOperator",
    "SetRefreshStatusOperator",
    "SparkOperator",
    "StreamSinkOperator",
    "SuperviseSinkOperator",
    "TableOperator",
    "ValidateTableOperator",
    "VerifyOperator",
}
OF_KAFKA = ("ingest", "synced", "tier")
MARKS = {**dict.fromkeys(OF_KAFKA, pytest.mark.kafka), "sql": pytest.mark.spark}


@pytest.fixture(scope="module")
def processes() -> Any:
    """Return a context for processes that have everything imported but share no state with the test."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.ended_operator"])
    return context


def prepare(catalog: Catalog, kind: str, connection: dict[str, str]) -> DynamicTable | None:
    """Create the table of two commits for the operator; return None if the operator creates it."""
    if kind == "synced":
        fields = [{"field": "id", "type": "int64", "optional": False}]
        sides = [{"field": side, "type": "struct", "fields": fields, "optional": True} for side in ("before", "after")]
        schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string", "optional": False}]}
        payload: dict[str, object] = {"before": None, "after": {"id": 1}, "op": "c"}
        produce(connection["log.kafka.bootstrap.servers"], "of_sync.synced", {"schema": schema, "payload": payload})
    if kind in ("made", "synced"):
        return None
    options = {"log.consistency": "eventual"} if kind == "tier" else {"log.system": "none"}
    table = catalog.create_table(
        f"ended.{kind}", ROWS, primary_key=["day", "id"], partition_by=["day"], options={"bucket": "1", **options}
    )
    for one in (1, 2):
        table.append(pa.table({"day": ["a", "b"], "id": [one] * 2}, schema=ROWS))
    if kind == "publish":
        table.branches.create("written")
        table.branches.open("written").append(pa.table({"day": ["c"], "id": [1]}, schema=ROWS))
    if kind == "orphans":
        (Path(table.location) / "day=a" / "bucket-0" / "data-left-behind-0.parquet").write_bytes(b"left")
    if kind == "tier":
        order = table.new_write().begin(commit_user="stream")
        with table.new_write().open_task(order) as write:
            write.write(pa.table({"day": ["c"], "id": [1]}, schema=ROWS))
            table.new_write().commit(order, [write.prepare_commit()], 1, defers_tiering=True)
    if kind == "reingest":
        value = b'{"before":null,"after":{"day":"c","id":1},"op":"c"}'
        record = {"source": "s", "topic": "s", "partition": 0, "offset": 0, "value": value, "reason": "too long"}
        table.append(ROWS.empty_table(), rejected=pa.Table.from_pylist([record], schema=REJECTED_SCHEMA))
    if kind == "ingest":
        change: dict[str, object] = {"before": None, "after": {"day": "c", "id": 1}, "op": "c"}
        produce(connection["log.kafka.bootstrap.servers"], "ended.source", change)
    return table


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=MARKS.get(kind, ())) for kind in KINDS])
@pytest.mark.integration
def test_an_operator_that_is_ended_leaves_nothing_behind(
    kind: str, tmp_path: Path, processes: Any, request: pytest.FixtureRequest
) -> None:
    kafka: LocalKafka | None = request.getfixturevalue("kafka") if kind in OF_KAFKA else None
    options = {"log.kafka.bootstrap.servers": kafka.bootstrap_servers} if kafka else {"log.system": "none"}
    extra: dict[str, Any] = {"warehouse": str(tmp_path / "warehouse"), "options": options}
    catalog = open_catalog(extra["warehouse"], extra["options"])
    table = prepare(catalog, kind, options)
    before = {} if table is None else state_of(table)
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=run_until_ended, args=(kind, extra, sender))
    process.start()
    request.addfinalizer(lambda: end(process))
    sender.close()  # so that the pipe closes when the process ends
    assert receiver.poll(240), "it did not get as far as that"
    assert receiver.recv() == "here"
    family = descendants(process.pid)

    os.kill(process.pid, signal.SIGTERM)
    # Airflow kills it after five seconds; a busy machine may need longer.
    process.join(240)

    assert process.exitcode == ENDED
    # A JVM ends when it notices that its Python process has ended.
    wait_until(lambda: not any(lives(pid) for pid in family))
    if table is None:
        with pytest.raises(NotFoundError):
            catalog.load_table(f"ended.{kind}")
        return
    again = catalog.load_table(table.name)
    after = state_of(again)
    if kind == "expire":
        # Snapshots expired before the signal stay expired.
        assert set(after.pop("snapshots")) <= set(before.pop("snapshots"))
    assert (after, again.inspect.lease_holder()) == (before, None)


def state_of(table: DynamicTable) -> dict[str, Any]:
    """Return a table's visible state and its orphan files."""
    rows = sorted((row["day"], row["id"]) for row in table.to_arrow().to_pylist())
    return {
        "rows": rows,
        "snapshots": table.inspect.snapshots()["snapshot_id"].to_pylist(),
        "tags": [tag.name for tag in table.tags.list()],
        "branches": list(table.branches.list()),
        "orphans": orphans(table),
    }


def orphans(table: DynamicTable) -> tuple[str, ...]:
    from datetime import timedelta

    return table.maintenance.remove_orphan_files(older_than=timedelta(0), dry_run=True).paths


def end(process: Any) -> None:
    """Kill all processes, even if the test fails: a blocked one would never end."""
    if process.is_alive():
        for pid in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.join(240)


def descendants(pid: int) -> set[int]:
    """Return a process and all its descendants."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def test_every_operator_that_writes_is_ended_by_the_test_above() -> None:
    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"dynamic_table.operators.{module.name}")

    def below(kind: type[Any]) -> set[str]:
        ours = {child for child in kind.__subclasses__() if child.__module__.startswith("dynamic_table.")}
        return {child.__name__ for child in ours}.union(*(below(child) for child in ours))

    assert below(CatalogOperator) == OTHERS | {kind.__name__ for kind, _ in KINDS.values()}


def test_a_timeout_which_has_ended_the_work_already_stays_a_timeout() -> None:
    task = CompactTableOperator(task_id="compact", table="a.b")

    def timed_out() -> None:
        try:
            raise AirflowTaskTimeout  # noqa: TRY301  as it comes: out of the work
        except AirflowTaskTimeout:
            task.on_kill()
            raise

    with pytest.raises(AirflowTaskTimeout):
        timed_out()
