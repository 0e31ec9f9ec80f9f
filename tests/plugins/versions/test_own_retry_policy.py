"""Retries by kind of error in versions of Airflow without retry policies, with a policy that the operators ask."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, BaseOperator
from jinja2 import StrictUndefined, UndefinedError

from dynamic_table.arguments.text_templates import TextTemplates
from dynamic_table.retry_policy import RETRY_ARGUMENTS, StorageRetryPolicy
from dynamic_table.versions.own_retry_policy import PolicedRetries
from dynamic_table.versions.sdk_exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)
from storage_lib.errors import CommitConflictError, CommitOutcomeUnknownError, InvalidInputError, NotFoundError
from tests.support.airflow_names import TaskDeferred

if TYPE_CHECKING:
    from collections.abc import Sequence


class Failing(TextTemplates, PolicedRetries, BaseOperator):
    """Raises what it is given."""

    template_fields: Sequence[str] = ("text",)

    def __init__(self, *, error: BaseException | None = None, text: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error
        self.text = text

    def execute(self, context: Any) -> Any:
        del context
        if self.error is not None:
            raise self.error
        return "done"

    def execute_complete(self, context: Any) -> Any:
        return self.execute(context)


class Heir(Failing):
    """Calls the method of its base, which asks the policy as well."""

    def execute(self, context: Any) -> Any:
        return super().execute(context)


CONTEXT: Any = {"ti": SimpleNamespace(dag_id="dag", run_id="run", task_id="t", map_index=-1, try_number=1, max_tries=5)}
PERMANENT = [NotFoundError("no table"), InvalidInputError("wrong"), ValueError("wrong"), PermissionError("closed")]
PASSING = [
    CommitConflictError("lost"),
    CommitOutcomeUnknownError("unknown"),
    ConnectionResetError("reset"),
    AirflowException("?"),
]
RESCHEDULED: Any = AirflowRescheduleException(None)  # type: ignore[no-untyped-call]  # Airflow's
UNASKED = [AirflowSkipException("skip"), AirflowFailException("fail"), RESCHEDULED]


def task(error: BaseException | None, kind: type[Failing] = Failing, **arguments: Any) -> Failing:
    return kind(task_id="t", error=error, retry_policy=StorageRetryPolicy(), **arguments)


@pytest.mark.parametrize("kind", [Failing, Heir])
@pytest.mark.parametrize("error", PERMANENT, ids=repr)
def test_a_permanent_error_fails_the_task_at_once_and_is_named(error: Exception, kind: type[Failing]) -> None:
    with pytest.raises(AirflowFailException) as failed:
        task(error, kind).execute(CONTEXT)

    assert str(failed.value) == f"{type(error).__name__}: {error}"
    assert failed.value.__cause__ is error


@pytest.mark.parametrize("error", [*PASSING, *UNASKED], ids=repr)
def test_every_other_error_is_left_to_airflow(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        task(error).execute(CONTEXT)

    assert raised.value is error


def test_a_conflict_whose_change_has_happened_is_not_repeated() -> None:
    error = CommitConflictError("lost")
    error.committed = True

    with pytest.raises(AirflowFailException):
        task(error).execute(CONTEXT)


def test_a_deferred_task_asks_when_it_is_resumed() -> None:
    with pytest.raises(AirflowFailException):
        task(InvalidInputError("wrong")).resume_execution("execute_complete", None, CONTEXT)
    with pytest.raises(CommitConflictError):
        task(CommitConflictError("lost")).resume_execution("execute_complete", None, CONTEXT)
    assert task(None).resume_execution("execute_complete", None, CONTEXT) == "done"


def test_a_deferral_passes() -> None:
    deferral = TaskDeferred(trigger=None, method_name="execute_complete")
    with pytest.raises(TaskDeferred):
        task(deferral).execute(CONTEXT)


def test_a_template_with_an_unknown_name_fails_the_task_at_once() -> None:
    with DAG("dag", schedule=None, template_undefined=StrictUndefined) as dag:
        failing = task(None, text="{{ no_such.name }}")

    with pytest.raises(AirflowFailException) as failed:
        failing.render_template_fields(CONTEXT, dag.get_template_env())
    assert isinstance(failed.value.__cause__, UndefinedError)


def test_an_operator_without_a_policy_leaves_all_to_airflow() -> None:
    with pytest.raises(InvalidInputError):
        Failing(task_id="t", error=InvalidInputError("wrong")).execute(CONTEXT)


def test_the_policy_comes_from_the_arguments_of_the_dag() -> None:
    with DAG("dag", schedule=None, default_args=RETRY_ARGUMENTS):
        one, mapped = Failing(task_id="one"), Failing.partial(task_id="many").expand(text=["a", "b"])

    assert isinstance(one.retry_policy, StorageRetryPolicy)
    assert one.retries == mapped.retries == RETRY_ARGUMENTS["retries"]
