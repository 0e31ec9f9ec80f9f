"""Retry policies as Airflow 3.3 has them, for the versions before it: classes of the same names, and their use.

The operators ask the policy themselves. A decision to fail becomes an ``AirflowFailException``, whose cause is the
error; all other errors are left to Airflow, which retries after ``retry_delay``: a policy can't shorten the delay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.operator import BaseOperatorMeta

from dynamic_table.versions.sdk_exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

__all__ = ["PolicedRetries", "RetryAction", "RetryDecision", "RetryPolicy"]

# These end a try in a way about which Airflow asks no policy, or do not end it.
UNASKED = (AirflowFailException, AirflowRescheduleException, AirflowSensorTimeout, AirflowSkipException)


class RetryAction(Enum):
    """What follows a failure."""

    RETRY = "retry"
    FAIL = "fail"
    DEFAULT = "default"


@dataclass(frozen=True)
class RetryDecision:
    """Decision of a policy with its reason; the delay is not used."""

    action: RetryAction = RetryAction.DEFAULT
    retry_delay: timedelta | None = None
    reason: str | None = None

    @classmethod
    def fail(cls, reason: str | None = None) -> RetryDecision:
        """Return the decision to fail, whatever tries are left."""
        return cls(action=RetryAction.FAIL, reason=reason)

    @classmethod
    def retry(cls, delay: timedelta | None = None, reason: str | None = None) -> RetryDecision:
        """Return the decision to retry if tries are left."""
        return cls(action=RetryAction.RETRY, retry_delay=delay, reason=reason)

    @classmethod
    def default(cls) -> RetryDecision:
        """Return the decision to leave it to Airflow."""
        return cls()


class RetryPolicy(ABC):
    """Decides whether a failed task is retried."""

    @abstractmethod
    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Any | None = None
    ) -> RetryDecision:
        """Decide by the exception."""


class PolicedRetries:
    """Mixin for operators, before Airflow's class: adds the argument ``retry_policy``, and asks the policy."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "execute" in vars(cls):
            cls.execute = _asking_policy(vars(cls)["execute"])  # type: ignore[attr-defined]  # of Airflow's class

    @BaseOperatorMeta._apply_defaults  # type: ignore[type-var]  # noqa: SLF001  as in Airflow's mixins, for default_args
    def __init__(self, *, retry_policy: RetryPolicy | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.retry_policy: Any = retry_policy

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Continue a deferred task."""
        above: Any = super()
        with _policed(self, context):
            return above.resume_execution(next_method, next_kwargs, context)

    def _do_render_template_fields(
        self, parent: Any, template_fields: Any, context: Any, jinja_env: Any, seen_oids: Any
    ) -> None:
        # Airflow renders before it calls ``execute``, and a mapped task only through this method.
        above: Any = super()
        with _policed(self, context):
            above._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)  # noqa: SLF001


def _asking_policy(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    def policed(self: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        with _policed(self, context):
            return execute(self, context, *args, **kwargs)

    return policed


@contextmanager
def _policed(operator: Any, context: Any) -> Iterator[None]:
    try:
        yield
    except UNASKED:
        raise
    except Exception as error:
        ti = context.get("ti")
        if operator.retry_policy is None or ti is None:
            raise
        decision = operator.retry_policy.evaluate(error, ti.try_number, ti.max_tries, context)
        if decision.action.value != RetryAction.FAIL.value:
            raise
        operator.log.info("The retry policy fails the task: %s", decision.reason)
        message = f"{type(error).__name__}: {error}"
        raise AirflowFailException(message) from error
