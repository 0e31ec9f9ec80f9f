"""Retry policy: which failures of a task are retried, and after how many seconds.

Put ``RETRY_ARGUMENTS`` into a DAG's ``default_args``. A commit conflict is retried at once, an outage after a delay,
both with jitter so that two losers do not collide again. All other failures are permanent and fail the task. After the
crash of a worker Airflow does not call the policy; there ``retry_delay`` applies, and before Airflow 3.3 to every
retry (``versions.policed_retries``).
"""

from __future__ import annotations

import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dynamic_table.versions.policed_retries import RETRY_DELAYS, RetryDecision, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

__all__ = ["DELAY_SECONDS", "RETRY_ARGUMENTS", "StorageRetryPolicy", "delay_before"]

# First delays by class name: importing the library here would import Arrow whenever a DAG is parsed.
DELAY_SECONDS: Mapping[str, float] = {
    "CommitConflictError": 1,
    "LeaseLostError": 1,
    "CommitOutcomeUnknownError": 2,
    "UnavailableError": 10,
    "SinkFailedError": 10,
}
# System errors that a user has to fix; others (a connection reset, a full disk) may be transient.
LASTING = ("FileNotFoundError", "PermissionError", "FileExistsError", "NotADirectoryError", "IsADirectoryError")
# If a user has set the state of the task, Airflow does not call the policy.
PASSING = ("OSError", "MemoryError", "TaskEndedError")
DELAY_SECONDS_MAX = 300.0
JITTER = 0.5


class StorageRetryPolicy(RetryPolicy):
    """Distinguishes transient from permanent failures; leaves Airflow's own exceptions to Airflow."""

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,  # noqa: ARG002  Airflow caps the tries itself
        context: Context | None = None,
    ) -> RetryDecision:
        """Decide by the exception's class; the delay doubles with every try."""
        ancestry = [kind.__name__ for kind in type(exception).__mro__]
        name = type(exception).__name__
        # The task's change was committed: a retry would commit it again.
        has_happened = getattr(exception, "committed", None) is True
        for retryable, first in DELAY_SECONDS.items():
            if retryable in ancestry and not has_happened:
                delay = delay_before(first, try_number, context)
                return RetryDecision.retry(delay, reason=f"{name}: worth another try")
        if "StorageError" in ancestry:
            why = "the change has happened" if has_happened else "trying again would end the same way"
            return RetryDecision.fail(reason=f"{name}: {why}")
        if "UndefinedError" in ancestry:
            return RetryDecision.fail(reason="a template uses a name that this run does not have")
        if "AirflowNotFoundException" in ancestry:
            return RetryDecision.fail(reason="the connection or variable has to be made first")
        passes = not any(kind in ancestry for kind in LASTING) and any(kind in ancestry for kind in PASSING)
        if passes or type(exception).__module__.startswith("airflow."):
            return RetryDecision.default()
        return RetryDecision.fail(reason=f"{name}: not known to pass by itself")


def delay_before(first: float, try_number: int, context: Context | None) -> timedelta:
    """Return ``first`` seconds doubled per try, plus up to half of it as jitter derived from the task's identity."""
    seconds = min(first * 2 ** (try_number - 1), DELAY_SECONDS_MAX)
    ti = context["ti"] if context else None
    asker = f"{ti.dag_id}/{ti.run_id}/{ti.task_id}/{ti.map_index}/{try_number}" if ti else str(try_number)
    return timedelta(seconds=seconds * (1 + JITTER * zlib.crc32(asker.encode()) / 2**32))


RETRY_ARGUMENTS: dict[str, Any] = {
    "retries": 5,
    **RETRY_DELAYS,
    "retry_policy": StorageRetryPolicy(),
}
