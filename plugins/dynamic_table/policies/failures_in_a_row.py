"""How often a sink has failed since it last got on, kept in its task's state store.

Airflow counts the tries of a task over its whole life, and a stream's life is years: an outage here and there would use
them up. So a sink that failed is started again within its try, and only failures without a batch between them count.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRescheduleException

from dynamic_table.retry_policy import DELAY_SECONDS, delay_before

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["FAILURES_KEY", "count_failure", "forget_failures", "start_again_later"]

FAILURES_KEY = "sink_failures"


def count_failure(context: Context, *, got_on: bool) -> int:
    """Note one more failure and return which one in a row it is; the first again if the sink ``got_on`` before it."""
    store: Any = context["task_state_store"]
    kept = store.get(FAILURES_KEY)
    # Clearing a task raises its last possible try: who clears it wants to begin anew.
    last_try = context["ti"].max_tries
    before = kept["count"] if isinstance(kept, dict) and kept["last_try"] == last_try and not got_on else 0
    store.set(FAILURES_KEY, {"count": before + 1, "last_try": last_try})
    return int(before) + 1


def forget_failures(context: Context) -> None:
    """Begin anew: the sink has ended as it was told to."""
    if (store := context.get("task_state_store")) is not None:
        store.delete(FAILURES_KEY)


def start_again_later(context: Context, failures: int) -> AirflowRescheduleException:
    """Return what makes Airflow run the task again in a while, longer with every failure, without using up a try."""
    delay = delay_before(DELAY_SECONDS["SinkFailedError"], failures, context)
    return AirflowRescheduleException(datetime.now(tz=UTC) + delay)  # type: ignore[no-untyped-call]  # Airflow's
