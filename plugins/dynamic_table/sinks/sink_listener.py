"""Stops the sink of a task that a user has ended while neither a worker nor a trigger was monitoring it.

A deferred task has no worker and, until a triggerer has taken it over (a second or two, or longer if none runs), no
trigger either. Airflow calls the plugins' listeners in the process that writes the state: the API server, or the
scheduler when a worker has crashed and no try is left.

Before Airflow 3.3 no trigger learns that its task was ended, and a verdict on a whole run reaches the listeners of the
run only, so they stop the sinks of its tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from dynamic_table.sinks.sink_job import BY_HAND, SINK_JOB_KEY
from dynamic_table.sinks.stored_job import job_of_task
from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.kept_state import state_of_task

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance

__all__ = [
    "on_dag_run_failed",
    "on_dag_run_success",
    "on_task_instance_failed",
    "on_task_instance_skipped",
    "on_task_instance_success",
]

ENDED = ("success", "failed", "skipped")
VERDICTS = ("", "timed_out")
"""Messages about a run whose tasks were ended with it; others are about a run whose tasks had ended."""


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:
    """Stop the sinks of a run that was marked as success."""
    _stop_sinks_of(dag_run, msg)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Stop the sinks of a run that was marked as failed, or took too long."""
    _stop_sinks_of(dag_run, msg)


def _stop_sinks_of(dag_run: DagRun, msg: str) -> None:
    if AirflowFeature.KILLED_TRIGGERS.is_here or msg not in VERDICTS:
        return
    for task_instance in dag_run.get_task_instances():
        _stop_job_of(task_instance)


@hookimpl
def on_task_instance_success(task_instance: TaskInstance) -> None:
    """Stop the sink of a task that was marked as success."""
    _stop_sink_of(task_instance)


@hookimpl
def on_task_instance_failed(task_instance: TaskInstance) -> None:
    """Stop the sink of a task that was marked as failed, unless the task will be retried."""
    _stop_sink_of(task_instance)


@hookimpl
def on_task_instance_skipped(task_instance: TaskInstance) -> None:
    """Stop the sink of a task that was marked as skipped."""
    _stop_sink_of(task_instance)


def _stop_sink_of(task_instance: TaskInstance) -> None:
    # A worker passes another class, without database access; it stops its sink itself.
    if type(task_instance).__module__ != "airflow.models.taskinstance" or task_instance.state not in ENDED:
        return
    # A task without a sink has no entry; the entry of a job that has ended was deleted.
    _stop_job_of(task_instance)


def _stop_job_of(task_instance: TaskInstance) -> None:
    names: dict[str, Any] = {
        name: getattr(task_instance, name) for name in ("dag_id", "run_id", "task_id", "map_index")
    }
    if (job := job_of_task(state_of_task(task_instance, SINK_JOB_KEY), **names)) is not None:
        job.request_stop(BY_HAND)
