"""The same identity on every try, a new one when a user clears the task."""

from __future__ import annotations

import pytest

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.policies.commit_identity import PARTS_MAX, TOKEN_BITS, commit_identity
from tests.support.task_context import DictStore, task_context

TASK = CompactTableOperator(task_id="compact", table="db.t")


def test_a_retry_commits_under_the_identity_of_the_first_try() -> None:
    store = DictStore()
    with pytest.raises(ConnectionError), commit_identity(task_context(TASK, store=store)) as first:
        raise ConnectionError

    with commit_identity(task_context(TASK, store=store)) as second:
        pass

    assert second == first


def test_a_try_whose_worker_died_before_airflow_heard_of_its_success_is_repeated_under_its_identity() -> None:
    store = DictStore()
    with commit_identity(task_context(TASK, store=store)) as first:
        pass

    with commit_identity(task_context(TASK, store=store)) as second:
        pass

    assert second == first


def test_a_task_cleared_after_success_commits_again() -> None:
    store = DictStore()
    with commit_identity(task_context(TASK, store=store)) as first:
        pass

    with commit_identity(task_context(TASK, store=store, max_tries=7)) as second:
        pass

    assert second.user == first.user
    assert second.token != first.token


def test_a_task_cleared_after_it_failed_commits_again() -> None:
    """Otherwise it would find the failed tries' commits and keep them, even after a correction."""
    store = DictStore()
    with pytest.raises(ValueError, match="wrong"), commit_identity(task_context(TASK, store=store)) as first:
        raise ValueError("wrong")

    with commit_identity(task_context(TASK, store=store, max_tries=7)) as second:
        pass

    assert second.token != first.token


def test_the_user_names_dag_run_task_and_map_index() -> None:
    with commit_identity(task_context(TASK, run_id="manual__1", map_index=3)) as identity:
        assert identity.arguments()["commit_user"] == "airflow/dag/manual__1/compact/3"


def test_parts_of_one_task_have_identifiers_of_their_own_that_json_keeps_exactly() -> None:
    with commit_identity(task_context(TASK)) as identity:
        found = {identity.arguments(part)["commit_identifier"] for part in range(100)}

    assert len(found) == 100
    assert PARTS_MAX * 2**TOKEN_BITS <= 2**53
