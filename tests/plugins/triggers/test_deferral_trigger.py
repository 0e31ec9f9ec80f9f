"""No trigger that a task defers to fires before the scheduler can know that the task is deferred."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import BaseEventTrigger, BaseTrigger

import dynamic_table
from dynamic_table.triggers import deferral_trigger
from dynamic_table.triggers.deferral_trigger import DEFERRAL_SECONDS_MIN, DeferralTrigger
from dynamic_table.triggers.file_change_trigger import FileChangeTrigger
from dynamic_table.triggers.stream_sink_trigger import StreamSinkTrigger
from dynamic_table.triggers.table_condition_trigger import TableConditionTrigger


def triggers_of_tasks() -> list[type[BaseTrigger]]:
    """Return every trigger class of the package, except for those of watched assets: no task waits for them."""
    found = set()
    for module in pkgutil.walk_packages(dynamic_table.__path__, "dynamic_table."):
        if module.name.startswith("dynamic_table.quality."):
            continue  # imports Great Expectations, which takes seconds, and defers nothing
        for value in vars(importlib.import_module(module.name)).values():
            is_ours = inspect.isclass(value) and value.__module__.startswith("dynamic_table.")
            if is_ours and issubclass(value, BaseTrigger) and not issubclass(value, BaseEventTrigger):
                found.add(value)
    return sorted(found - {DeferralTrigger}, key=lambda each: each.__name__)


ARGUMENTS: dict[type[BaseTrigger], dict[str, Any]] = {
    FileChangeTrigger: {"path": "", "stamp": "another", "poll_seconds": 0.0, "look_seconds": 60},
    StreamSinkTrigger: {"directory": "", "poll_seconds": 0.0, "stale_seconds": 60, "report_seconds": 0},
    TableConditionTrigger: {
        "table": "shop.missing",
        "condition": {"kind": "partition", "partition": {}, "min_rows": 1},
        "dynamic_table_conn_id": "dynamic_table_default",
        "poll_seconds": 0.0,
    },
}


async def fired(trigger: BaseTrigger) -> Any:
    return (await anext(trigger.run())).payload


class FakeTime:
    """Clock that only sleeping advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    clock = FakeTime()
    monkeypatch.setattr(deferral_trigger, "time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    monkeypatch.delenv("AIRFLOW__DYNAMIC_TABLE__DEFERRAL_SECONDS_MIN", raising=False)
    return clock


@pytest.mark.parametrize("kind", triggers_of_tasks(), ids=lambda kind: kind.__name__)
def test_every_trigger_of_a_task_leaves_run_to_the_base(kind: type[BaseTrigger]) -> None:
    assert issubclass(kind, DeferralTrigger)
    assert kind.run is DeferralTrigger.run
    assert kind in ARGUMENTS, "give arguments with which it is met at once"


@pytest.mark.parametrize("kind", triggers_of_tasks(), ids=lambda kind: kind.__name__)
def test_a_trigger_that_is_met_at_once_fires_after_the_minimum(
    kind: type[BaseTrigger], clock: FakeTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = {"state": "met"}
    arguments = ARGUMENTS[kind] | {name: str(tmp_path) for name in ("path", "directory") if name in ARGUMENTS[kind]}
    trigger = kind(**arguments)

    async def met() -> dict[str, Any]:
        return payload

    monkeypatch.setattr(trigger, "wait", met)
    began = clock.now

    assert asyncio.run(fired(trigger)) == payload
    assert clock.now == began + DEFERRAL_SECONDS_MIN


class LateTrigger(DeferralTrigger):
    """Trigger whose condition is met after some seconds of a clock."""

    def __init__(self, clock: FakeTime, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.clock, self.seconds = clock, seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError

    async def wait(self) -> dict[str, Any]:
        self.clock.now += self.seconds
        return {}


@pytest.mark.parametrize(
    ("minimum", "waited", "took"), [("5", 7, 7), ("5", 4.9, 5), ("0", 0, 0), ("-1", 0, 0), ("30", 1, 30)]
)
def test_the_minimum_is_no_delay_for_what_takes_longer_and_is_configurable(
    clock: FakeTime, monkeypatch: pytest.MonkeyPatch, minimum: str, waited: float, took: float
) -> None:
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__DEFERRAL_SECONDS_MIN", minimum)
    began = clock.now

    asyncio.run(fired(LateTrigger(clock, waited)))

    assert clock.now - began == pytest.approx(took)
