"""Nothing is dropped before a user has approved the list; the next task receives exactly the approved partitions."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from dynamic_table.operators.approve_drop import ApproveDropOperator
from dynamic_table.operators.drop_partitions import DropPartitionsOperator
from dynamic_table.versions.sdk_exceptions import AirflowFailException, AirflowSkipException
from storage_lib.errors import InvalidInputError
from tests.support.airflow_names import TaskAwaitingInput
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

    assert execute(task) == {"listed_partitions": [{"dt": "a"}], "waits": True}
    [question] = asked
    assert question["subject"] == "Drop 1 partition(s) of db.t?"
    assert question["body"] == "    dt=a"
    assert question["options"] == ["Approve", "Reject"]
    assert table.calls == []


@pytest.mark.usefixtures("table")
def test_a_long_list_is_shown_in_part_and_handed_on_whole(asked: list[dict[str, Any]]) -> None:
    named = [{"dt": f"day\n{number}"} for number in range(150)]

    assert execute(ApproveDropOperator(task_id="approve", table="db.t", partitions=named))["listed_partitions"] == named
    assert asked[0]["body"].splitlines()[-3:] == ["    dt=day 99", "", "and 50 more"]


def test_nobody_is_asked_where_no_approval_is_needed(asked: list[dict[str, Any]]) -> None:
    """The table itself is not opened either: it does not exist."""
    task = ApproveDropOperator(task_id="approve", table="no.such", before={"dt": "b"}, needs_approval="False")

    assert execute(task) == {"partitions": "no approval needed"}
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


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("answer", "handed_on"), [("Approve", [{"dt": "a"}]), ("Reject", None)])
def test_the_list_is_handed_on_once_it_is_approved(
    asked: list[dict[str, Any]], answer: str, handed_on: list[dict[str, str]] | None
) -> None:
    task = ApproveDropOperator(task_id="approve", table="db.t", before={"dt": "b"})
    pushed = execute(task)
    context = task_context(task)
    ti = SimpleNamespace(
        map_index=-1,
        xcom_push=lambda key, value: pushed.update({key: value}),
        xcom_pull=lambda task_ids, key, map_indexes: (
            pushed[key] if (task_ids, map_indexes) == ("approve", -1) else None
        ),
    )
    cast("dict[str, Any]", context).update(ti=ti)
    event: dict[str, Any] = {"chosen_options": [answer], "params_input": {}, "responded_by_user": None}

    task.execute_complete(context, {**event, "responded_at": datetime(2026, 1, 1, tzinfo=UTC)})

    assert len(asked) == 1
    assert pushed.get("partitions") == handed_on


@pytest.mark.parametrize("rendered", [None, "None", ""])
def test_nothing_is_dropped_if_the_approval_was_marked_as_success(table: RecordingTable, rendered: str | None) -> None:
    task = DropPartitionsOperator(task_id="drop", table="db.t", approved="{{ a template }}", before={"dt": "z"})
    task.approved = rendered

    with pytest.raises(AirflowFailException, match=r"no list of partitions of db\.t was approved"):
        task.execute(task_context(task))
    assert table.calls == []


def test_a_drop_that_needs_no_approval_drops_what_it_is_for(table: RecordingTable) -> None:
    asked_nobody = DropPartitionsOperator(task_id="drop", table="db.t", approved="{{ a template }}", before={"dt": "b"})
    asked_nobody.approved = "no approval needed"
    alone = DropPartitionsOperator(task_id="drop", table="db.t", before={"dt": "b"})

    for task in (asked_nobody, alone):
        assert task.execute(task_context(task))["partitions"] == [{"dt": "a"}]
    assert len(table.calls) == 2
