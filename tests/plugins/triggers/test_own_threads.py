"""A store that hangs stops neither the supervision of sinks, nor another store's sensors, nor the triggerer's end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import BaseHook

from dynamic_table.hook import DynamicTableHook
from dynamic_table.sinks.sink_job import open_job_directory
from dynamic_table.triggers import own_threads
from dynamic_table.triggers.file_change_trigger import FileChangeTrigger
from dynamic_table.triggers.own_threads import ABANDONED_MAX, CALLS_MAX, CallTimeoutError, in_own_thread
from dynamic_table.triggers.snapshot_trigger import SnapshotTrigger
from dynamic_table.triggers.stream_sink_trigger import StreamSinkTrigger
from dynamic_table.triggers.table_condition_trigger import TableConditionTrigger
from storage_lib.errors import NotFoundError
from tests.support.waiting import wait_until

SECONDS = 30


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """Return the event until which the store hangs."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def hanging(answer: threading.Event, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the store of the connection ``slow`` hang; return the list of the tables that it was asked for."""
    asked: list[str] = []

    class Connection:
        def __init__(self, conn_id: str) -> None:
            self.conn_id = conn_id

    async def aget_connection(conn_id: str) -> Any:
        return Connection(conn_id)

    def load_table(hook: DynamicTableHook, name: str) -> None:
        connection: Any = hook._connection
        if connection.conn_id == "slow":
            asked.append(name)
            answer.wait(SECONDS)
        message = f"no table {name}"
        raise NotFoundError(message)

    monkeypatch.setattr(BaseHook, "aget_connection", aget_connection)
    monkeypatch.setattr(DynamicTableHook, "load_table", load_table)
    return asked


def sensor(connection: str) -> TableConditionTrigger:
    condition = {"kind": "SnapshotNewerThan"}
    return TableConditionTrigger(table="a.t", condition=condition, dynamic_table_conn_id=connection, poll_seconds=0.01)


def test_forty_sensors_on_a_store_that_hangs_stop_nothing_else(hanging: list[str], tmp_path: Path) -> None:
    lost = open_job_directory(tmp_path / "a.t", owner="x")  # has no process
    declared = tmp_path / "tables.yaml"
    declared.write_text("tables: {}")

    async def run() -> tuple[Any, ...]:
        stuck: list[Any] = [asyncio.create_task(sensor("slow").wait()) for _ in range(40)]
        watcher = SnapshotTrigger(table="a.t", dynamic_table_conn_id="slow", poll_seconds=0.01).run()
        stuck.append(asyncio.ensure_future(anext(watcher)))
        await asyncio.to_thread(wait_until, lambda: len(hanging) >= CALLS_MAX)
        others = (
            StreamSinkTrigger(directory=str(lost.directory), poll_seconds=0.01, stale_seconds=120).wait(),
            FileChangeTrigger(path=str(declared), stamp="other", poll_seconds=0.01, look_seconds=SECONDS).wait(),
            sensor("quick").wait(),
        )
        found = await asyncio.wait_for(asyncio.gather(*others), SECONDS / 2)
        for each in stuck:
            each.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        return found

    sink, file, quick = asyncio.run(run())

    assert sink == {"directory": str(lost.directory), "state": "lost"}
    assert file == {"path": str(declared)}
    assert quick["error"] == "NotFoundError"
    assert len(hanging) <= 2 * CALLS_MAX


def test_a_sensor_goes_on_when_its_store_answers_again(
    hanging: list[str], answer: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_own_thread, "__kwdefaults__", {"seconds_max": 0.02})

    async def run() -> Any:
        waiting = asyncio.create_task(sensor("slow").wait())
        await asyncio.to_thread(
            wait_until, lambda: len(hanging) >= CALLS_MAX + 1
        )  # more calls than slots: those before were abandoned
        answer.set()
        return await asyncio.wait_for(waiting, SECONDS)

    assert asyncio.run(run())["error"] == "NotFoundError"


def test_a_call_returns_or_raises_what_its_function_does() -> None:
    def fail(kind: type[BaseException]) -> None:
        raise kind("own")

    async def run() -> Any:
        assert await in_own_thread("g", lambda a, b: (a, b), 1, 2) == (1, 2)
        for kind in (ValueError, TimeoutError):
            with pytest.raises(kind, match="own"):
                await in_own_thread("g", fail, kind)
        return own_threads._groups[asyncio.get_running_loop()]["g"].abandoned

    assert asyncio.run(run()) == 0


def test_calls_that_never_return_do_not_pile_up_without_end(answer: threading.Event) -> None:
    started = []

    def hang() -> None:
        started.append(1)
        answer.wait(SECONDS)

    async def run() -> None:
        for _ in range(ABANDONED_MAX):
            with pytest.raises(CallTimeoutError, match="has not returned within"):
                await in_own_thread("g", hang, seconds_max=0)
        with pytest.raises(CallTimeoutError, match=f"{ABANDONED_MAX} earlier calls of g have not returned"):
            await in_own_thread("g", hang, seconds_max=0)
        answer.set()
        group = own_threads._groups[asyncio.get_running_loop()]["g"]
        await asyncio.to_thread(wait_until, lambda: not group.abandoned)
        await in_own_thread("g", hang)

    asyncio.run(asyncio.wait_for(run(), SECONDS))

    assert len(started) == ABANDONED_MAX + 1
