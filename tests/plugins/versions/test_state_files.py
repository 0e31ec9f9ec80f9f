"""State of tasks in files, for versions of Airflow that have no store: it survives a try, and then expires."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dynamic_table.versions import kept_state
from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.kept_state import state_of_task, state_stores_of_trigger, task_state_store
from dynamic_table.versions.state_files import KEPT_SECONDS, FileStateStore


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of all state, as in an Airflow without a store."""
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(
        kept_state, "AirflowFeature", SimpleNamespace(TASK_STATE=SimpleNamespace(is_here=False)), raising=True
    )
    return tmp_path / "state"


def instance(**names: Any) -> Any:
    return SimpleNamespace(**{"dag_id": "dag", "run_id": "run/1", "task_id": "task", "map_index": -1} | names)


def age(directory: Path, seconds: float) -> None:
    for path in (*directory.rglob("*"), directory):
        os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_a_value_is_found_by_the_next_try_and_by_the_api_server(root: Path) -> None:
    task_state_store({"ti": instance()}).set("job", {"directory": "/jobs/1", "number": 2**40})

    assert task_state_store({"ti": instance()}).get("job") == {"directory": "/jobs/1", "number": 2**40}
    assert state_of_task(instance(), "job") == {"directory": "/jobs/1", "number": 2**40}
    assert {path.stat().st_mode & 0o077 for path in root.rglob("*")} == {0}


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    "other", [{"dag_id": "dag2"}, {"dag_id": "d/g"}, {"run_id": "run"}, {"task_id": "t"}, {"map_index": 3}]
)
def test_no_other_task_sees_it(other: dict[str, Any]) -> None:
    task_state_store({"ti": instance()}).set("job", 1)

    assert task_state_store({"ti": instance(**other)}).get("job") is None


@pytest.mark.usefixtures("root")
def test_a_task_that_is_not_mapped_has_one_state_whatever_its_index_is_called() -> None:
    task_state_store({"ti": instance(map_index=None)}).set("job", 1)

    assert state_of_task(instance(map_index=-1), "job") == 1


@pytest.mark.usefixtures("root")
def test_airflows_own_store_comes_first() -> None:
    assert task_state_store({"ti": instance(), "task_state_store": "Airflow's"}) == "Airflow's"


def test_a_deleted_key_is_gone_whatever_its_retention_was(tmp_path: Path) -> None:
    store = FileStateStore(tmp_path / "dag" / "task")
    store.set("a", 1)
    store.set("b", 2, retention=timedelta.max)

    for key in ("a", "b", "missing"):
        store.delete(key)

    assert [store.get("a"), store.get("b", "default"), store.get("missing")] == [None, "default", None]


def test_a_value_expires_after_thirty_days_unless_it_is_to_last(tmp_path: Path) -> None:
    store = FileStateStore(tmp_path / "dag" / "task")
    store.set("passing", 1)
    store.set("lasting", 2, retention=timedelta.max)
    age(tmp_path, KEPT_SECONDS + 60)

    assert [store.get("passing"), store.get("lasting")] == [None, 2]


def test_the_retention_of_the_last_value_counts(tmp_path: Path) -> None:
    store = FileStateStore(tmp_path / "dag" / "task")
    store.set("a", 1, retention=timedelta.max)
    store.set("a", 2)
    store.set("b", 1)
    store.set("b", 2, retention=timedelta.max)

    assert [store.get("a"), store.get("b")] == [2, 2]
    age(tmp_path, KEPT_SECONDS + 60)
    assert [store.get("a"), store.get("b")] == [None, 2]


def test_what_has_expired_is_deleted_with_the_first_entry_of_another_task(tmp_path: Path) -> None:
    of_dag = tmp_path / "dag"
    for name, retention in (("old", None), ("kept", timedelta.max)):
        FileStateStore(of_dag / name).set("key", 1, retention=retention)
    age(of_dag, KEPT_SECONDS + 60)
    FileStateStore(of_dag / "young").set("key", 1)

    assert sorted(path.name for path in of_dag.iterdir()) == ["kept", "young"]


@pytest.mark.usefixtures("root")
def test_a_watcher_finds_its_position_and_no_other_watchers() -> None:
    [store] = state_stores_of_trigger(None, "shop.orders")
    asyncio.run(store.aset("snapshot", 7))

    assert asyncio.run(state_stores_of_trigger(None, "shop.orders")[0].aget("snapshot")) == 7
    assert asyncio.run(state_stores_of_trigger(None, "shop.sales")[0].aget("snapshot")) is None


def test_the_features_are_in_order_of_their_versions() -> None:
    assert [each.value[0] for each in AirflowFeature] == sorted(each.value[0] for each in AirflowFeature)


def test_two_processes_may_store_a_value_at_once(tmp_path: Path) -> None:
    stores = [FileStateStore(tmp_path / "state") for _ in range(4)]

    def set_often(store: FileStateStore) -> None:
        for number in range(50):
            store.set("job", number)

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(set_often, stores))

    assert stores[0].get("job") == 49
    assert len(list((tmp_path / "state").iterdir())) == 1
