"""Which failures are retried, and when."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.stream_sink import SinkFailedError
from dynamic_table.operators.table_operator import TaskEndedError
from dynamic_table.retry_policy import DELAY_SECONDS, StorageRetryPolicy
from dynamic_table.versions.policed_retries import RetryAction
from dynamic_table.versions.sdk_exceptions import AirflowException, AirflowNotFoundException
from storage_lib import errors
from tests.support.task_context import task_context

POLICY = StorageRetryPolicy()


def classes_below(kind: type[Exception]) -> list[type[Exception]]:
    return [found for child in kind.__subclasses__() for found in (child, *classes_below(child))]


@pytest.mark.parametrize("kind", classes_below(errors.RetryableError))
def test_every_retryable_error_is_tried_again_within_seconds(kind: type[Exception]) -> None:
    decision = POLICY.evaluate(kind("lost"), try_number=1, max_tries=5)

    assert decision.action is RetryAction.RETRY
    assert decision.retry_delay is not None
    first = DELAY_SECONDS[kind.__name__]
    assert first <= decision.retry_delay.total_seconds() <= 1.5 * first


@pytest.mark.parametrize("kind", [*classes_below(errors.PermanentError), errors.StorageError])
def test_every_other_storage_error_fails_at_once(kind: type[Exception]) -> None:
    assert POLICY.evaluate(kind("wrong"), try_number=1, max_tries=5).action is RetryAction.FAIL


def test_what_has_happened_is_not_tried_again() -> None:
    error = errors.UnavailableError("the metastore is out")
    errors.note_outcome(error, committed=True)

    assert POLICY.evaluate(error, 1, 5).action is RetryAction.FAIL


def test_a_template_without_its_value_fails_at_once() -> None:
    decision = POLICY.evaluate(UndefinedError("'ds' is undefined"), 1, 5)

    assert decision.action is RetryAction.FAIL
    assert "template" in str(decision.reason)


@pytest.mark.parametrize(
    "passing",
    [
        ConnectionError("reset"),
        TimeoutError(),
        OSError(28, "no space"),
        MemoryError(),
        AirflowException("?"),
        TaskEndedError("by hand"),
    ],
)
def test_what_may_pass_is_left_to_airflow(passing: Exception) -> None:
    assert POLICY.evaluate(passing, 1, 5).action is RetryAction.DEFAULT


@pytest.mark.parametrize(
    "lasting",
    [
        TypeError("no such argument"),
        ValueError("no number"),
        ImportError("no module"),
        FileNotFoundError(2, "gone"),
        PermissionError(13, "not yours"),
        AirflowNotFoundException("no such connection"),
    ],
)
def test_what_would_fail_again_fails_at_once(lasting: Exception) -> None:
    assert POLICY.evaluate(lasting, 1, 5).action is RetryAction.FAIL


def test_a_sink_that_died_is_started_again() -> None:
    assert POLICY.evaluate(SinkFailedError("lost"), 1, 5).action is RetryAction.RETRY


def test_the_delay_doubles_up_to_five_minutes() -> None:
    delays = [POLICY.evaluate(errors.UnavailableError("down"), number, 9).retry_delay for number in range(1, 10)]

    seconds = [delay.total_seconds() for delay in delays if delay]
    assert seconds[:5] == sorted(seconds[:5])
    assert 20 <= seconds[1] <= 30
    assert seconds[-1] <= 450


def test_two_losers_of_one_race_wait_differently_but_each_the_same_every_time() -> None:
    task = CompactTableOperator(task_id="compact", table="db.t")
    lost = errors.CommitConflictError("lost")

    delays = [POLICY.evaluate(lost, 1, 5, task_context(task, map_index=index)).retry_delay for index in (0, 1, 0)]

    assert delays[0] == delays[2] != delays[1]
