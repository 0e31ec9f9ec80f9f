"""What retries promise on every version of Airflow, as its own task runner runs the tries of a task.

A commit conflict is retried and a permanent error is not; a retry finds its own commit and its own sink; a task that a
user has cleared starts from scratch.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG
from jinja2 import StrictUndefined

from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.retry_policy import RETRY_ARGUMENTS
from dynamic_table.sinks.sink_job import SinkJob, SinkState, newest_job
from dynamic_table.versions.airflow_feature import AirflowFeature
from storage_lib import open_catalog
from storage_lib.errors import CommitConflictError, CommitOutcomeUnknownError, InvalidInputError
from tests.support import light_sink
from tests.support.task_runs import STARTED, TaskRuns
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage_lib import DynamicTable

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
ROWS = pa.table({"id": [1]})


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskRuns:
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__STATE_DIRECTORY", str(tmp_path / "state"))
    return TaskRuns(monkeypatch)


@pytest.fixture
def orders(warehouse: Path) -> DynamicTable:
    return open_catalog(str(warehouse)).create_table(
        "shop.orders", COLUMNS, options={"log.system": "none", "write-only": "true"}
    )


class RaisingOperator(TableOperator):
    """Raises an error."""

    def __init__(self, *, error: Exception, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error

    def execute(self, context: Any) -> None:
        del context
        raise self.error


class AppendingOperator(TableOperator):
    """Appends a row, and fails the first try after its commit."""

    def execute(self, context: Any) -> int:
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            if (own := identity.own_commit(table)) is not None:
                return own.id
            snapshot = table.append(ROWS, **identity.arguments())
        assert snapshot is not None
        if context["ti"].try_number == 1:
            raise CommitOutcomeUnknownError("the answer was lost")
        return snapshot.id


def dag_of(kind: Any, **arguments: Any) -> DAG:
    with DAG("dag", schedule=None, default_args=RETRY_ARGUMENTS, template_undefined=StrictUndefined) as dag:
        kind(task_id="task", **arguments)
    return dag


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (CommitConflictError("lost"), "up_for_retry"),
        (ConnectionResetError("reset"), "up_for_retry"),
        (InvalidInputError("wrong"), "failed"),
        (ValueError("wrong"), "failed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_the_kind_of_an_error_decides_whether_the_task_is_retried(runs: TaskRuns, error: Exception, state: str) -> None:
    dag = dag_of(RaisingOperator, table="shop.orders", error=error)

    found, raised = runs.run(dag)

    assert found == state
    assert raised is error or (raised is not None and raised.__cause__ is error)
    assert runs.run(dag, try_number=6)[0] == "failed"


def test_a_template_with_an_unknown_name_is_not_retried(runs: TaskRuns) -> None:
    assert runs.run(dag_of(AppendingOperator, table="{{ no_such.name }}"))[0] == "failed"


def test_a_retry_finds_the_commit_of_its_first_try(runs: TaskRuns, orders: DynamicTable) -> None:
    dag = dag_of(AppendingOperator, table="shop.orders")

    states = [runs.run(dag)[0], *(runs.run(dag, try_number=number)[0] for number in (2, 3))]

    assert states == ["up_for_retry", "success", "success"]
    assert orders.to_arrow().num_rows == 1


@pytest.mark.parametrize("again", [{"max_tries": 6}, {"started": STARTED + timedelta(hours=1)}], ids=["clear", "rerun"])
def test_a_cleared_task_and_a_run_that_was_made_again_commit_again(
    runs: TaskRuns, orders: DynamicTable, again: dict[str, Any]
) -> None:
    dag = dag_of(AppendingOperator, table="shop.orders")
    runs.run(dag)

    if "started" in again:
        runs.stored.clear()  # Airflow deletes them with the run
    assert runs.run(dag, try_number=2, **again)[0] == "success"

    assert orders.to_arrow().num_rows == 2


@pytest.fixture
def sink(tmp_path: Path, orders: DynamicTable) -> Iterator[DAG]:
    yield dag_of(
        StreamSinkOperator,
        table=orders.name,
        source={"kind": "debezium_json", "name": "changes"},
        jobs_directory=str(tmp_path / "jobs"),
        command=(sys.executable, str(Path(light_sink.__file__))),
        deferrable=True,
        stop_timeout_seconds=120,
    )
    for directory in (tmp_path / "jobs").glob("*/job-*"):
        SinkJob(directory).kill()


def running(tmp_path: Path) -> SinkJob:
    job = newest_job(tmp_path / "jobs" / "shop.orders")
    assert job is not None
    wait_until(lambda: job.report().state is not SinkState.STARTING)
    return job


def test_a_retry_finds_its_sink(runs: TaskRuns, sink: DAG, tmp_path: Path) -> None:
    assert runs.run(sink)[0] == "deferred"
    first = running(tmp_path)

    assert runs.run(sink, try_number=2)[0] == "deferred"

    assert running(tmp_path) == first
    assert first.report().state is SinkState.RUNNING


@pytest.mark.skipif(AirflowFeature.KILLED_TRIGGERS.is_here, reason="Airflow tells the trigger, which stops the sink")
def test_the_sink_of_a_cleared_task_is_stopped_and_another_one_started(
    runs: TaskRuns, sink: DAG, tmp_path: Path
) -> None:
    runs.run(sink)
    first = running(tmp_path)

    assert runs.run(sink, try_number=2, max_tries=6)[0] == "deferred"

    assert first.report().state is SinkState.CANCELLED
    assert running(tmp_path) != first
    assert running(tmp_path).report().state is SinkState.RUNNING
