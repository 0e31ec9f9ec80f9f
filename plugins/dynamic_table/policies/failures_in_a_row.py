"""Number of failures of a sink since it last finished a batch, stored in its task's state store.

Airflow counts a task's tries over its whole life, which may be years for a stream: occasional outages would use them
up. So a failed sink is restarted within the same try, and finishing a batch resets the count.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dynamic_table.retry_policy import DELAY_SECONDS, delay_before
from dynamic_table.versions.kept_state import task_state_store
from dynamic_table.versions.sdk_exceptions import AirflowRescheduleException

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["FAILURES_KEY", "count_failure", "forget_failures", "start_again_later"]

FAILURES_KEY = "sink_failures"


def count_failure(context: Context, *, got_on: bool) -> int:
    """Count a failure and return the number in a row; 1 if the sink finished a batch before it (``got_on``)."""
    store = task_state_store(context)
    stored = store.get(FAILURES_KEY)
    # Clearing a task raises its max_tries; a clear resets the count.
    last_try = context["ti"].max_tries
    before = stored["count"] if isinstance(stored, dict) and stored["last_try"] == last_try and not got_on else 0
    store.set(FAILURES_KEY, {"count": before + 1, "last_try": last_try})
    return int(before) + 1


def forget_failures(context: Context) -> None:
    """Reset the count: the sink has ended as requested."""
    if (store := task_state_store(context)) is not None:
        store.delete(FAILURES_KEY)


def start_again_later(context: Context, failures: int) -> AirflowRescheduleException:
    """Return the exception that reschedules the task without using up a try; the delay grows with each failure."""
    delay = delay_before(DELAY_SECONDS["SinkFailedError"], failures, context)
    return AirflowRescheduleException(datetime.now(tz=UTC) + delay)  # type: ignore[no-untyped-call]  # Airflow's
