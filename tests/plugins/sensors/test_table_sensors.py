"""Sensors behave the same on a worker and in the triggerer, and fail if their condition can never be met."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from airflow.sdk import BaseHook

from dynamic_table.events.table_conditions import (
    LogLagBelow,
    PartitionHasData,
    SnapshotNewerThan,
    condition_of,
    spelled,
)
from dynamic_table.sensors.table_sensors import (
    LogLagSensor,
    PartitionSensor,
    SinkHealthSensor,
    SnapshotSensor,
    TableSensor,
)
from dynamic_table.sinks.sink_job import open_job_directory
from dynamic_table.triggers.table_condition_trigger import TableConditionTrigger
from dynamic_table.versions.sdk_exceptions import AirflowFailException
from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError, UnavailableError
from tests.support.airflow_names import TaskDeferred
from tests.support.task_context import task_context

if TYPE_CHECKING:
    from storage_lib import DynamicTable

COLUMNS = pa.schema([pa.field("dt", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def orders(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> DynamicTable:
    """Create a table partitioned by day without a commit. Triggers read their connection as workers do."""

    async def aget_connection(conn_id: str) -> Any:
        return BaseHook.get_connection(conn_id)

    monkeypatch.setattr(BaseHook, "aget_connection", aget_connection)
    return open_catalog(str(warehouse)).create_table(
        "shop.orders", COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], options={"log.system": "none"}
    )


def fill(table: DynamicTable, day: str, *ids: int) -> None:
    table.append(pa.table({"dt": [day] * len(ids), "id": pa.array(ids, pa.int64())}))


def sees(sensor: TableSensor) -> tuple[bool, Any]:
    looked = sensor.poke(task_context(sensor))
    return looked.is_done, looked.xcom_value


def test_a_partition_is_waited_for_until_it_has_the_rows(orders: DynamicTable) -> None:
    sensor = PartitionSensor(task_id="wait", table="shop.orders", partition={"dt": "a"}, min_rows="2")

    assert sees(sensor) == (False, {})
    fill(orders, "b", 1, 2, 3)
    fill(orders, "a", 1)
    assert sees(sensor)[0] is False
    fill(orders, "a", 2)
    assert sees(sensor) == (True, {"table": "shop.orders", "partition": {"dt": "a"}, "rows": 2})


def test_a_newer_snapshot_is_waited_for_by_id_or_by_time(orders: DynamicTable) -> None:
    first = SnapshotSensor(task_id="wait", table="shop.orders")
    assert sees(first) == (False, {})
    fill(orders, "a", 1)
    assert sees(first)[0] is True

    assert sees(SnapshotSensor(task_id="wait", table="shop.orders", newer_than_snapshot="1"))[0] is False
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert sees(SnapshotSensor(task_id="wait", table="shop.orders", newer_than=soon))[0] is False
    ago = (soon - timedelta(hours=2)).isoformat()
    assert sees(SnapshotSensor(task_id="wait", table="shop.orders", newer_than=ago))[1]["version"] == 1


def test_a_table_without_a_log_has_no_lag(orders: DynamicTable) -> None:
    assert sees(LogLagSensor(task_id="wait", table="shop.orders")) == (True, {"table": orders.name, "lag": 0})


def test_a_lag_is_waited_for_and_an_unknown_one_is_an_outage() -> None:
    def table(**described: str) -> Any:
        return SimpleNamespace(name="db.t", describe=lambda: described)

    lag = {"log end": "{}", "log records not yet in files": "7"}
    assert LogLagBelow(max_records=6).look(table(**lag)).is_met is False
    assert LogLagBelow(max_records=7).look(table(**lag)).is_met is True
    with pytest.raises(UnavailableError, match="no broker"):
        LogLagBelow(max_records=7).look(table(**{"log end": "unknown: no broker"}))


@pytest.mark.parametrize(
    ("sensor", "named"),
    [
        (PartitionSensor(task_id="w", table="shop.orders", partition={"dt": "None"}), "dt"),
        (PartitionSensor(task_id="w", table="shop.orders", partition={"dt": "a"}, min_rows="x"), "min_rows"),
        (PartitionSensor(task_id="w", table="shop.orders", partition={"day": "a"}), "day"),
        (SnapshotSensor(task_id="w", table="shop.orders", newer_than="2024-05-14"), "newer_than"),
        (SnapshotSensor(task_id="w", table="None"), "table"),
        (LogLagSensor(task_id="w", table="shop.orders", max_records=-1), "max_records"),
    ],
)
def test_arguments_that_will_never_come_true_are_refused(orders: DynamicTable, sensor: TableSensor, named: str) -> None:
    fill(orders, "a", 1)

    with pytest.raises(InvalidInputError, match=named):
        sees(sensor)


@pytest.mark.parametrize(
    "condition",
    [
        PartitionHasData(partition={"dt": "a"}, min_rows=3),
        SnapshotNewerThan(snapshot_id=4, timestamp_millis=5),
        LogLagBelow(max_records=6),
    ],
)
def test_a_condition_travels_as_json(condition: Any) -> None:
    assert condition_of(json.loads(json.dumps(spelled(condition)))) == condition


def deferred(sensor: TableSensor) -> TableConditionTrigger:
    with pytest.raises(TaskDeferred) as waiting:
        sensor.execute(task_context(sensor))
    assert waiting.value.timeout == timedelta(seconds=60)
    path, arguments = waiting.value.trigger.serialize()
    assert path == "dynamic_table.triggers.table_condition_trigger.TableConditionTrigger"
    return TableConditionTrigger(**json.loads(json.dumps(arguments)))


def test_a_deferred_sensor_ends_with_what_its_trigger_saw(orders: DynamicTable) -> None:
    sensor = PartitionSensor(
        task_id="wait", table="shop.orders", partition={"dt": "a"}, deferrable=True, poke_interval=0.01, timeout=60
    )
    trigger = deferred(sensor)

    async def meanwhile() -> dict[str, Any]:
        waiting = asyncio.ensure_future(anext(trigger.run()))
        await asyncio.to_thread(fill, orders, "a", 1)
        return (await waiting).payload

    event = asyncio.run(meanwhile())

    assert sensor.execute_complete(task_context(sensor), event)["rows"] == 1
    assert sensor.execute(task_context(sensor))["rows"] == 1, "what is there already is not waited for"


def test_a_deferred_sensor_fails_with_what_its_trigger_met(orders: DynamicTable, warehouse: Path) -> None:
    sensor = PartitionSensor(task_id="wait", table="shop.orders", partition={"dt": "a"}, deferrable=True, timeout=60)
    trigger = deferred(sensor)
    open_catalog(str(warehouse)).drop_table(orders.name)

    async def fired() -> dict[str, Any]:
        return (await anext(trigger.run())).payload

    event = asyncio.run(fired())

    with pytest.raises(AirflowFailException, match=r"NotFoundError.*shop\.orders"):
        sensor.execute_complete(task_context(sensor), event)


def test_a_trigger_waits_for_the_end_of_an_outage(orders: DynamicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([UnavailableError("no answer"), None])
    fill(orders, "a", 1)
    look = PartitionHasData.look

    def fail_once(condition: PartitionHasData, table: DynamicTable) -> Any:
        if error := next(looks):
            raise error
        return look(condition, table)

    monkeypatch.setattr(PartitionHasData, "look", fail_once)
    trigger = TableConditionTrigger(
        table=orders.name,
        condition=spelled(PartitionHasData(partition={"dt": "a"})),
        dynamic_table_conn_id="dynamic_table_default",
        poll_seconds=0.01,
    )

    async def fired() -> dict[str, Any]:
        return (await anext(trigger.run())).payload

    assert asyncio.run(fired())["result"]["rows"] == 1


def heartbeat(jobs: Path, **said: Any) -> None:
    """Write the heartbeat of a sink of ``shop.orders``, with this test as its process."""
    job = open_job_directory(jobs / "shop.orders")
    job.spec_path.write_text(json.dumps({"source": {"kind": "dynamic_table", "name": "shop.raw", "options": {}}}))
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    (job.directory / "process.json").write_text(json.dumps({"pid": os.getpid(), "started": int(stat[19])}))
    job.heartbeat_path.write_text(json.dumps({"state": "RUNNING", **said}))


def test_a_sink_is_healthy_once_it_has_finished_a_batch(orders: DynamicTable, tmp_path: Path) -> None:
    fill(orders, "a", 1)
    sensor = SinkHealthSensor(task_id="wait", table="shop.orders", jobs_directory=str(tmp_path), commit_age_max="600")

    assert sees(sensor) == (False, {})
    heartbeat(tmp_path)
    assert sees(sensor)[0] is False
    heartbeat(tmp_path, batch_id=0)
    is_met, told = sees(sensor)

    assert is_met
    assert (told["table"], told["state"], told["batch_id"], told["snapshot_id"]) == ("shop.orders", "running", 0, 1)


@pytest.mark.parametrize(
    ("limits", "said", "complaint"),
    [
        ({}, {"state": "FAILED", "error": "UnavailableError: no broker", "batch_id": 3}, "failed, UnavailableError"),
        ({"heartbeat_age_max": 0}, {"batch_id": 3}, "heartbeat is"),
        ({"commit_age_max": 1}, {"batch_id": 3}, "newest commit is None s old"),
        ({"lag_max": 0}, {"batch_id": 3}, "lag is None"),
    ],
)
def test_what_is_wrong_with_a_sink_is_in_the_log(
    orders: DynamicTable,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    limits: dict[str, Any],
    said: dict[str, Any],
    complaint: str,
) -> None:
    assert orders.name == "shop.orders"
    heartbeat(tmp_path, **said)
    if "heartbeat_age_max" in limits:
        os.utime(next(tmp_path.glob("*/job-*/heartbeat.json")), (0, 0))
    sensor = SinkHealthSensor(task_id="wait", table="shop.orders", jobs_directory=str(tmp_path), **limits)

    assert sees(sensor)[0] is False
    assert complaint in capsys.readouterr().out
