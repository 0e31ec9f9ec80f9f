"""Airflow's context for ``execute`` without Airflow: a state store and outlet events."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk.execution_time.context import OutletEventAccessors

from dynamic_table.table_events import TABLE_EVENTS
from dynamic_table.versions.kept_state import NEVER_EXPIRE

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context


class DictStore(dict[str, Any]):
    """Task state store in a dictionary; ``lasting`` are the keys with retention NEVER_EXPIRE."""

    def __init__(self, **entries: Any) -> None:
        super().__init__(entries)
        self.lasting: set[str] = set()

    def set(self, key: str, value: object, *, retention: timedelta | None = None) -> None:
        """Store a value."""
        self[key] = value
        (self.lasting.add if retention is NEVER_EXPIRE else self.lasting.discard)(key)

    def delete(self, key: str) -> None:
        """Delete a value; a missing key is ignored."""
        self.pop(key, None)


def task_context(
    task: BaseOperator,
    *,
    store: DictStore | None = None,
    run_id: str = "run",
    map_index: int = -1,
    max_tries: int = 5,
    try_number: int = 1,
    folder: Path | None = None,
) -> Context:
    """Return the context of one try; pass the same ``store`` to the next try, a new ``max_tries`` after clearing.

    ``folder`` is that of the DAG file. Pushed XComs are in ``context["ti"].pushed``.
    """
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(
        dag_id="dag",
        run_id=run_id,
        task_id=task.task_id,
        map_index=map_index,
        max_tries=max_tries,
        try_number=try_number,
        stats_tags={},
        pushed=pushed,
        xcom_push=lambda key, value: pushed.update({key: value}),
    )
    context = {
        "ti": ti,
        "task": task,
        "dag": SimpleNamespace(folder=str(folder)),
        "task_state_store": DictStore() if store is None else store,
        "outlet_events": OutletEventAccessors(),
    }
    return cast("Context", context)


def announced(context: Context) -> list[dict[str, Any]]:
    """Return the events that were emitted through the alias, each with its asset's URI."""
    events = context["outlet_events"][TABLE_EVENTS].asset_alias_events
    return [{"uri": event.dest_asset_key.uri, **event.extra} for event in events]
