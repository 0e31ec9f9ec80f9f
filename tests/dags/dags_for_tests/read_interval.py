"""A task that reads the changes of an interval, fails once afterwards, and reads it again."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, task

from dynamic_table.arguments.interval_changes import interval_changes
from dynamic_table.hook import DynamicTableHook
from dynamic_table.retry_policy import RETRY_ARGUMENTS

if TYPE_CHECKING:
    from airflow.sdk import Context

HOME = Path(os.environ["AIRFLOW_HOME"])

with DAG(
    dag_id="read_interval",
    schedule=None,
    default_args=RETRY_ARGUMENTS,
    params={"start": "", "end": ""},
):

    @task
    def read(**context: Any) -> list[int]:
        """Return the ids that changed; the first try writes them to a file, waits for the test and fails."""
        from datetime import datetime

        from storage_lib.errors import CommitConflictError

        given: Context = context  # type: ignore[assignment]  # as Airflow hands it over
        span = tuple(datetime.fromisoformat(given["params"][name]) for name in ("start", "end"))
        table = DynamicTableHook().load_table("crowd.read")
        changes = interval_changes(given, table, interval=(span[0], span[1]))
        ids = sorted(changes.read().read_all()["id"].to_pylist())
        if not (HOME / "interval").exists():
            (HOME / "interval.new").write_text(json.dumps(ids))
            (HOME / "interval.new").replace(HOME / "interval")
            while not (HOME / "interval_go").exists():
                time.sleep(0.1)
            raise CommitConflictError("worth another try")
        return ids

    read()
