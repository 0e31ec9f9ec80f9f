"""A job of an external system that a retry finds again, in versions of Airflow without such a mixin."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import BaseOperator

from dynamic_table.versions.own_resumable_job import ResumableJobMixin
from tests.support.task_context import DictStore, task_context


class Jobs(ResumableJobMixin, BaseOperator):
    """Starts jobs 1, 2, ...; ``states`` are their states."""

    external_id_key = "job"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.states: dict[int, str] = {}
        self.polled: list[int] = []
        self.crashes = False

    def execute(self, context: Any) -> Any:
        return self.execute_resumable(context)

    def submit_job(self, context: Any) -> int:
        del context
        self.states[len(self.states) + 1] = "active"
        return len(self.states)

    def get_job_status(self, external_id: int, context: Any) -> str:
        del context
        return self.states[external_id]

    def is_job_active(self, status: str) -> bool:
        return status == "active"

    def is_job_succeeded(self, status: str) -> bool:
        return status == "succeeded"

    def poll_until_complete(self, external_id: int, context: Any) -> None:
        del context
        self.polled.append(external_id)
        if self.crashes:
            raise ConnectionError

    def get_job_result(self, external_id: int, context: Any) -> str:
        del context
        return f"result {external_id}"


def tried(**arguments: Any) -> tuple[Jobs, DictStore]:
    """Return a task whose first try has started a job and then crashed."""
    jobs, store = Jobs(task_id="t", **arguments), DictStore()
    jobs.crashes = True
    with pytest.raises(ConnectionError):
        jobs.execute_resumable(task_context(jobs, store=store))
    jobs.crashes = False
    return jobs, store


@pytest.mark.parametrize(
    ("state", "polled", "result"),
    [("active", [1, 1], None), ("succeeded", [1], "result 1"), ("failed", [1, 2], "result 2")],
)
def test_a_retry_waits_for_its_job_takes_its_result_or_starts_another(
    state: str, polled: list[int], result: str | None
) -> None:
    jobs, store = tried()
    jobs.states[1] = state

    assert jobs.execute_resumable(task_context(jobs, store=store)) == result
    assert jobs.polled == polled
    assert store["job"] == polled[-1]


def test_a_task_that_is_not_durable_starts_a_job_at_every_try() -> None:
    jobs, store = tried(durable=False)

    assert jobs.execute_resumable(task_context(jobs, store=store)) == "result 2"
