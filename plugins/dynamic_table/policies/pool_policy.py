"""Cluster policy that puts tasks that rewrite a table into the table's pool, if provisioning has created one.

A task's ``pool`` can't be templated, and the table is known only when the run exists or, for a mapped task, when the
upstream task has listed the tables. So the scheduler or the API server calls the policy for each new task instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow import settings
from airflow.policies import hookimpl

from dynamic_table.table_pools import pools_of
from dynamic_table.versions.airflow_feature import AirflowFeature

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy.sql import Select

__all__ = ["mapped_table", "register", "task_instance_mutation_hook"]

NAME = "dynamic_table.policies.pool_policy"


def register() -> None:
    """Register the policy with Airflow; idempotent. Older versions do not tell policies the run of a new task."""
    if not AirflowFeature.RUNS_IN_POLICIES.is_here:
        return
    import sys

    policies = settings.get_policy_plugin_manager()
    if not policies.has_plugin(NAME):
        policies.register(sys.modules[__name__], NAME)
    # Airflow loads policies only if there is a module airflow_local_settings.
    settings.task_instance_mutation_hook.is_noop = False  # type: ignore[attr-defined]  # of a function


@hookimpl
def task_instance_mutation_hook(task_instance: TaskInstance, dag_run: DagRun | None) -> None:
    """Put the instance into its table's pool; before the run exists the table is unknown."""
    task: Any = getattr(task_instance, "task", None)
    if task is None or dag_run is None:
        return
    parameters = task.dag.params if task.dag is not None else {}
    defaults = {key: parameters[key] for key in ("table",) if key in parameters}
    mapped = mapped_table(task, task_instance.map_index, lambda told_by: _told(told_by, dag_run))
    for pool in pools_of(task, dag_run.conf or {}, defaults, mapped):
        # A task in a missing pool would never start.
        if _exists(pool, dag_run):
            task_instance.pool = pool
            return


def mapped_table(task: Any, index: int, result_of: Callable[[Any], object]) -> object:
    """Return the table of the ``index``-th instance of a mapped task; None if it can't be determined.

    ``told`` returns the result of an upstream task.
    """
    if not task.is_mapped or index < 0:
        return None
    given = task.expand_input.value
    if isinstance(given, Mapping):
        if set(given) != {"table"}:
            return None  # a cross product: the index alone does not determine the table
        given = given["table"]
    listed = given if isinstance(given, list | tuple) else result_of(given)
    if not isinstance(listed, list) or index >= len(listed):
        return None
    one = listed[index]
    return one.get("table") if isinstance(one, Mapping) else one


def _told(told_by: Any, dag_run: DagRun) -> object:
    """Return the XCom that a task's output refers to; None for values derived from one or from elsewhere."""
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    from dynamic_table.arguments.mapped_arguments import keeps_tables

    if keeps_tables(getattr(told_by, "callables", ())):
        told_by = getattr(told_by, "arg", told_by)
    if not hasattr(told_by, "operator") or not hasattr(told_by, "key"):
        return None
    return _asked(
        dag_run,
        select(XComModel.value).where(
            XComModel.dag_id == dag_run.dag_id,
            XComModel.run_id == dag_run.run_id,
            XComModel.task_id == told_by.operator.task_id,
            XComModel.key == told_by.key,
            XComModel.map_index == -1,
        ),
    )


def _exists(pool: str, dag_run: DagRun) -> bool:
    from airflow.models.pool import Pool
    from sqlalchemy import select

    return _asked(dag_run, select(Pool.pool).where(Pool.pool == pool)) is not None


def _asked(dag_run: DagRun, question: Select[Any]) -> object:
    """Query within the run's own session: Airflow forbids any other here."""
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None:
        return None
    with session.no_autoflush:
        return session.scalar(question)
