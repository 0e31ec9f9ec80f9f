"""Puts tasks that rewrite a table into its pool, where provisioning has made one; Airflow calls it a cluster policy.

A pool is no template, and the table of a run is known only when there is a run. So this is asked for each task
instance as it is made, by the scheduler or the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow import settings
from airflow.policies import hookimpl

from dynamic_table.table_pools import pool_of

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance

__all__ = ["register", "task_instance_mutation_hook"]

NAME = "dynamic_table.pool_policy"


def register() -> None:
    """Make Airflow ask; a second time does nothing."""
    import sys

    policies = settings.get_policy_plugin_manager()
    if not policies.has_plugin(NAME):
        policies.register(sys.modules[__name__], NAME)
    # Airflow looks for policies only where there is an airflow_local_settings, and asks none otherwise.
    settings.task_instance_mutation_hook.is_noop = False  # type: ignore[attr-defined]  # of a function


@hookimpl
def task_instance_mutation_hook(task_instance: TaskInstance, dag_run: DagRun | None) -> None:
    """Put the instance into its table's pool; without a run, nothing is known of the table yet."""
    task: Any = getattr(task_instance, "task", None)
    if task is None or dag_run is None:
        return
    parameters = task.dag.params if task.dag is not None else {}
    defaults = {key: parameters[key] for key in ("table",) if key in parameters}
    pool = pool_of(task, dag_run.conf or {}, defaults)
    # A task in a pool that does not exist would never be started.
    if pool is not None and _exists(pool, dag_run):
        task_instance.pool = pool


def _exists(pool: str, dag_run: DagRun) -> bool:
    """Ask within the run's own session: Airflow forbids any other here."""
    from airflow.models.pool import Pool
    from sqlalchemy import select
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None:
        return False
    with session.no_autoflush:
        return session.scalar(select(Pool.pool).where(Pool.pool == pool)) is not None
