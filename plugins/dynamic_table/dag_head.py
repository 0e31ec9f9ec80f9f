"""What the heads of all DAGs over dynamic tables say: retries, the form, the owner, who is told of a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, conf

from dynamic_table.operators.engine_operator import ENGINES
from dynamic_table.policies.dotted_callable import load_callable
from dynamic_table.retry_policy import RETRY_ARGUMENTS

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["OWNER", "TAG", "dag_head", "engine_params", "master_param", "tell_failure"]

OWNER = "dynamic-tables"
TAG = "dynamic table"


def dag_head(documentation: str | None, **default_args: Any) -> dict[str, Any]:
    """Return a DAG's arguments: ``documentation`` is its file's docstring, ``default_args`` override those here."""
    return {
        "default_args": {"owner": OWNER, "on_failure_callback": tell_failure, **RETRY_ARGUMENTS, **default_args},
        # What a form left out is None rather than its text.
        "render_template_as_native_obj": True,
        "tags": [TAG],
        "doc_md": documentation,
        "catchup": False,
    }


def engine_params() -> dict[str, Param]:
    """Return the fields of a form by which an ``EngineOperator`` is told what does its work."""
    return {"engine": Param("auto", enum=list(ENGINES), title="Engine", section="More"), "master": master_param(None)}


def master_param(default: str | None) -> Param:
    """Return the field for Spark's master."""
    return Param(
        default,
        type=["null", "string"],
        title="Spark master",
        description="None: that of the connection, else what Spark is configured with.",
        section="More",
    )


def tell_failure(context: Context) -> None:
    """Hand a task that has failed for good to the function that ``[dynamic_table] on_failure`` names, if any.

    It is ``package.module:function``, called with the task's context: to page somebody, to write to a chat.
    """
    path = conf.get("dynamic_table", "on_failure", fallback="")
    # Who ends a task by hand knows it.
    if path and type(context.get("exception")).__name__ != "TaskEndedError":
        load_callable(path)(context)
