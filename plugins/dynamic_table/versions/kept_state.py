"""State of tasks and triggers between tries: Airflow's stores, or before Airflow 3.3, which has none, files.

    <state>/tasks/<dag>/<digest of run, task and map index>/    of a task
    <state>/triggers/<digest>/                                  of a trigger

``<state>`` is ``[dynamic_table] state_directory``, by default ``dynamic_table_state`` in Airflow's home. It has to be
the same directory for the workers, the triggerer, and the API server, which stops the sinks of ended tasks.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.sdk_conf import conf
from dynamic_table.versions.state_files import FileStateStore, digest

__all__ = ["NEVER_EXPIRE", "state_of_task", "state_stores_of_trigger", "task_state_store"]

if TYPE_CHECKING or AirflowFeature.TASK_STATE.is_here:
    from airflow.sdk import NEVER_EXPIRE  # type: ignore[attr-defined]  # their stub lacks it
else:
    NEVER_EXPIRE = timedelta.max


def task_state_store(context: Any) -> Any:
    """Return the state store of the context's task; None only if a newer Airflow has not given it one."""
    store = context.get("task_state_store")
    if store is None and not AirflowFeature.TASK_STATE.is_here:
        ti = context["ti"]
        return _file_store(ti.dag_id, ti.run_id, ti.task_id, ti.map_index)
    return store


def state_of_task(task_instance: Any, key: str) -> Any:
    """Return the entry of a task instance, by a process with access to Airflow's database; None if there is none."""
    names = {name: getattr(task_instance, name) for name in ("dag_id", "run_id", "task_id", "map_index")}
    if not AirflowFeature.TASK_STATE.is_here:
        return _file_store(**names).get(key)
    from airflow.state import TaskScope, get_state_backend

    stored = get_state_backend().get(TaskScope(**names), key)
    return None if stored is None else json.loads(stored)


def state_stores_of_trigger(trigger: Any, identity: str) -> list[Any]:
    """Return the state store of each asset that has this trigger.

    Where Airflow has none, return one of the trigger, named by ``identity``, which serves all its assets.
    """
    if not AirflowFeature.TASK_STATE.is_here:
        return [FileStateStore(_root() / "triggers" / digest(identity))]
    stores = trigger.asset_state_store
    if stores is None:
        return []
    # The mapping that Airflow injects can be asked for an asset by name only, and a trigger knows no names.
    return [*stores._by_name.values(), *stores._by_uri.values()]  # noqa: SLF001


def _file_store(dag_id: str, run_id: str, task_id: str, map_index: int | None) -> FileStateStore:
    readable = re.sub(r"[^\w.-]", "_", dag_id, flags=re.ASCII)[:100]
    identity = json.dumps([run_id, task_id, -1 if map_index is None else map_index])
    return FileStateStore(_root() / "tasks" / f"{readable}-{digest(dag_id)[:8]}" / digest(identity))


def _root() -> Path:
    from airflow.configuration import AIRFLOW_HOME

    chosen = conf.get("dynamic_table", "state_directory", fallback="") or ""
    return Path(chosen) if chosen else Path(AIRFLOW_HOME) / "dynamic_table_state"
