"""Nothing is dropped before a user has approved the list; the next task receives exactly the approved partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput

from dynamic_table.operators.approve_drop import ApproveDropOperator
from storage_lib.errors import InvalidInputError
from tests.support.task_context import task_context

if TYPE_CHECKING:
    from tests.support.recording_table import RecordingTable


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the questions that Airflow would show."""
    questions: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **asked: questions.append(asked)
    )
    return questions


def execute(task: ApproveDropOperator) -> dict[str, Any]:
    """Run one try and return its XComs."""
    context, pushed = task_context(task), cast("dict[str, Any]", {})
    ti = SimpleNamespace(id="id", xcom_push=lambda key, value: pushed.update({key: value}))
    cast("dict[str, Any]", context).update(ti=ti, task_instance=ti)
    try:
        task.execute(context)
    except TaskAwaitingInput:
        pushed["waits"] = True
    return pushed


def test_the_partitions_are_shown_and_handed_on_while_the_task_waits(
    table: RecordingTable, asked: list[dict[str, Any]]
) -> None:
    task = ApproveDropOperator(task_id="approve", table="db.t", before={"dt": "b"})

    assert execute(task) == {"partitions": [{"dt": "a"}], "waits": True}
    [question] = asked
    assert question["subject"] == "Drop 1 partition(s) of db.t?"
    assert question["body"] == "    dt=a"
    assert question["options"] == ["Approve", "Reject"]
    assert table.calls == []


@pytest.mark.usefixtures("table")
def test_a_long_list_is_shown_in_part_and_handed_on_whole(asked: list[dict[str, Any]]) -> None:
    named = [{"dt": f"day\n{number}"} for number in range(150)]

    assert execute(ApproveDropOperator(task_id="approve", table="db.t", partitions=named))["partitions"] == named
    assert asked[0]["body"].splitlines()[-3:] == ["    dt=day 99", "", "and 50 more"]


def test_nobody_is_asked_where_no_approval_is_needed(asked: list[dict[str, Any]]) -> None:
    """The table itself is not opened either: it does not exist."""
    task = ApproveDropOperator(task_id="approve", table="no.such", before={"dt": "b"}, needs_approval="False")

    assert execute(task) == {}
    assert asked == []


@pytest.mark.usefixtures("table")
def test_nobody_is_asked_where_nothing_would_go(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(AirflowSkipException, match=r"db\.t has no partitions to drop"):
        execute(ApproveDropOperator(task_id="approve", table="db.t", before={"dt": "a"}))
    assert asked == []


@pytest.mark.usefixtures("table")
def test_what_names_no_partitions_is_refused(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidInputError):
        execute(ApproveDropOperator(task_id="approve", table="db.t", partitions=[{"dt": "None"}]))
    assert asked == []
