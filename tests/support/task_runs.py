"""Tries of a task as a worker runs them: by Airflow's own task runner, with a supervisor of memory in its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog
from airflow.sdk.api.datamodels._generated import DagRun, TIRunContext
from airflow.sdk.execution_time import task_runner

if TYPE_CHECKING:
    import pytest
    from airflow.sdk import DAG

__all__ = ["TaskRuns"]

STARTED = datetime(2026, 1, 2, tzinfo=UTC)


class TaskRuns:
    """Tries of the only task of a DAG; what the task has stored by Airflow's store outlives a try."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stored: dict[str, Any] = {}
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", self, raising=False)
        # The runner's handler of signals would stay in this process.
        monkeypatch.setattr("signal.signal", lambda *_: None)

    def send(self, msg: Any) -> Any:
        """Answer a message of the task."""
        kind = type(msg).__name__
        if kind == "ValidateInletsAndOutlets":
            return SimpleNamespace(inactive_assets=[])
        if kind == "GetTaskStateStore":
            from airflow.sdk.exceptions import ErrorType
            from airflow.sdk.execution_time.comms import ErrorResponse, TaskStateStoreResult

            if msg.key in self.stored:
                return TaskStateStoreResult(value=self.stored[msg.key])
            return ErrorResponse(error=ErrorType.TASK_STORE_NOT_FOUND)
        if kind == "SetTaskStateStore":
            self.stored[msg.key] = msg.value
        if kind == "DeleteTaskStateStore":
            self.stored.pop(msg.key, None)
        return None

    def run(
        self, dag: DAG, *, try_number: int = 1, max_tries: int = 5, started: datetime = STARTED
    ) -> tuple[str, BaseException | None]:
        """Run one try, and return the state that Airflow gives the task, and the task's error."""
        (task,) = dag.tasks
        facts: dict[str, Any] = {
            "dag_id": dag.dag_id,
            "run_id": "run",
            "run_after": started - timedelta(days=1),
            "start_date": started,
            "run_type": "manual",
            "state": "running",
            "consumed_asset_events": [],
        }
        # Which fields there are depends on the version.
        nothing: dict[str, Any] = dict.fromkeys(DagRun.model_fields)
        run = DagRun(**nothing | facts)
        from_server = TIRunContext(dag_run=run, max_tries=max_tries, should_retry=try_number <= max_tries)
        ti = task_runner.RuntimeTaskInstance.model_construct(
            id=UUID(int=try_number),
            task_id=task.task_id,
            dag_id=dag.dag_id,
            run_id=run.run_id,
            map_index=-1,
            try_number=try_number,
            max_tries=max_tries,
            dag_version_id=UUID(int=0),
            task=task,
            start_date=started,
            _ti_context_from_server=from_server,
        )
        state, _, error = task_runner.run(ti, ti.get_template_context(), structlog.get_logger())
        return str(state.value), error
