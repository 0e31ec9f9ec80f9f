"""Arguments shared by all DAGs over dynamic tables: retries, form fields, owner and failure callback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from dynamic_table.operators.engine_operator import ENGINES
from dynamic_table.policies.dotted_callable import load_callable
from dynamic_table.retry_policy import RETRY_ARGUMENTS
from dynamic_table.versions.sdk_conf import conf

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["OWNER", "TAG", "dag_head", "engine_params", "master_param", "tell_failure"]

OWNER = "dynamic-tables"
TAG = "dynamic table"


def dag_head(documentation: str | None, **default_args: Any) -> dict[str, Any]:
    """Return a DAG's arguments: ``documentation`` is its file's docstring, ``default_args`` override those here."""
    return {
        "default_args": {"owner": OWNER, "on_failure_callback": tell_failure, **RETRY_ARGUMENTS, **default_args},
        # With native rendering a form field that was left empty is None, not "None".
        "render_template_as_native_obj": True,
        "tags": [TAG],
        "doc_md": documentation,
        "catchup": False,
    }


def engine_params() -> dict[str, Param]:
    """Return the form fields that choose the engine of an ``EngineOperator``."""
    return {"engine": Param("auto", enum=list(ENGINES), title="Engine", section="More"), "master": master_param(None)}


def master_param(default: str | None) -> Param:
    """Return the form field for Spark's master."""
    return Param(
        default,
        type=["null", "string"],
        title="Spark master",
        description="None: the connection's master, or else Spark's configuration.",
        section="More",
    )


def tell_failure(context: Context) -> None:
    """Call the function that ``[dynamic_table] on_failure`` names, if any, after a task's last try has failed.

    The setting is ``package.module:function``; the function receives the task's context, for example to send an alert.
    """
    path = conf.get("dynamic_table", "on_failure", fallback="")
    # No alert for a task that a user ended.
    if path and type(context.get("exception")).__name__ != "TaskEndedError":
        load_callable(path)(context)
