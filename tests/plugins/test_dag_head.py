"""Arguments shared by all DAGs, and their failure callback."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dynamic_table.dag_head import OWNER, dag_head, tell_failure
from dynamic_table.operators.table_operator import TaskEndedError
from dynamic_table.retry_policy import RETRY_ARGUMENTS
from storage_lib.errors import InvalidInputError

HEARD: list[Any] = []


def alert(context: Any) -> None:
    HEARD.append(context)


def test_every_task_gets_the_retries_an_owner_and_a_callback() -> None:
    head = dag_head("What it does.", retries=9)

    assert head["doc_md"] == "What it does."
    assert head["default_args"] == {
        **RETRY_ARGUMENTS,
        "owner": OWNER,
        "on_failure_callback": tell_failure,
        "retries": 9,
    }


def test_a_failure_calls_the_function_that_the_settings_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "on_call", SimpleNamespace(alert=alert))
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__ON_FAILURE", "on_call:alert")
    context: Any = {"task": "compact"}

    tell_failure(context)

    assert [context] == HEARD


def test_who_ends_a_task_by_hand_is_not_told_that_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__ON_FAILURE", "no_such_module_here:page")
    context: Any = {"exception": TaskEndedError("by hand")}

    tell_failure(context)


def test_without_one_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__DYNAMIC_TABLE__ON_FAILURE", raising=False)

    tell_failure({})


def test_a_name_that_is_none_is_told_in_the_tasks_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__ON_FAILURE", "no_such_module_here:page")

    with pytest.raises(InvalidInputError, match="no_such_module_here"):
        tell_failure({})
