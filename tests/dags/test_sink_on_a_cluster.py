"""A drill: a sink whose connection names a standalone Spark. Its executors write, and its driver may crash."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.sinks.sink_job import SinkJob, SinkState
from dynamic_table.versions.sdk_exceptions import AirflowRescheduleException
from storage_lib import open_catalog
from storage_lib.log_store.log_offsets import LogOffsets
from tests.support.airflow_names import TaskDeferred
from tests.support.spark_cluster import QUICK_EXECUTORS, spark_cluster
from tests.support.spark_topics import produce
from tests.support.task_context import DictStore, task_context
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from local_kafka import LocalKafka

TOPIC = "cluster.changes"
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])

# Two drivers and their executors take two minutes on a small machine, little of it in our code.
pytestmark = [
    pytest.mark.drill,
    pytest.mark.integration,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(400),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Start a master with one worker and yield its address."""
    with spark_cluster(tmp_path, workers=1) as running:
        yield running.master


@pytest.fixture
def task(
    cluster: str, kafka: LocalKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StreamSinkOperator]:
    """Return a sink into ``db.t``, on the master that its connection names."""
    extra = {
        "warehouse": str(tmp_path / "warehouse"),
        "bootstrap_servers": kafka.bootstrap_servers,
        "spark_master": cluster,
        "jobs_directory": str(tmp_path / "jobs"),
        "options": {"log.system": "none"},
    }
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__SPARK_CONF_KEYS", "spark.driver.* spark.ui.enabled spark.executor.*")
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    yield StreamSinkOperator(
        task_id="sink",
        table="db.t",
        source={"kind": "debezium_json", "name": TOPIC, "options": {"log.scan": "full"}},
        select=["id", "v", "_row_kind"],  # without a query the driver would apply the records itself
        trigger_seconds=0,
        spark_conf={
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "700m",
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.enabled": "false",
            **QUICK_EXECUTORS,
        },
        deferrable=True,
        retries=3,
    )
    for directory in (tmp_path / "jobs" / "db.t").glob("job-*"):
        SinkJob(directory).kill()


def start(task: StreamSinkOperator, store: DictStore) -> SinkJob:
    """Run a try until it defers."""
    with pytest.raises(TaskDeferred):
        task.execute(task_context(task, store=store))
    return SinkJob(Path(store["sink_job"]))


def upserts(keys: range, text: str) -> list[dict[str, object] | None]:
    return [{"before": None, "after": {"id": key, "v": text}, "op": "c"} for key in keys]


def wait_for_rows(job: SinkJob, count: int) -> None:
    wait_until(lambda: (beat := job.report()).heartbeat.get("row_count", 0) >= count or beat.state.is_ended)
    assert job.report().state is SinkState.RUNNING, job.log_tail()


def applications(directory: Path) -> int:
    """Return the number of drivers that had executors on the worker."""
    return len(list((directory / "worker-0").glob("app-*")))


def test_a_sink_on_a_cluster_whose_driver_is_killed_is_started_again_once(
    task: StreamSinkOperator, kafka: LocalKafka, tmp_path: Path
) -> None:
    table = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"}).create_table(
        "db.t", COLUMNS, primary_key=["id"], options={"bucket": "1"}
    )
    store, servers = DictStore(), kafka.bootstrap_servers
    produce(servers, TOPIC, *upserts(range(5), "first"))

    first = start(task, store)
    wait_for_rows(first, 5)
    assert applications(tmp_path) == 1

    os.killpg(json.loads((first.directory / "process.json").read_text())["pid"], signal.SIGKILL)
    produce(servers, TOPIC, *upserts(range(4, 9), "second"))
    with pytest.raises(AirflowRescheduleException):
        task.execute_complete(
            task_context(task, store=store), {"directory": str(first.directory), "state": first.report().state.value}
        )
    second = start(task, store)
    # Another try finds the running sink and starts none.
    assert start(task, store) == second
    wait_for_rows(second, 5)

    second.request_stop("enough")
    wait_until(lambda: second.report().state.is_ended)
    assert (first.directory.name, second.directory.name) == ("job-0001", "job-0002")
    assert second.report().state is SinkState.STOPPED
    assert applications(tmp_path) == 2
    written = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert written == {key: "first" if key < 4 else "second" for key in range(9)}
    assert table.inspect.source_offsets(TOPIC) == LogOffsets({0: 10})
    assert table.inspect.lease_holder() is None
