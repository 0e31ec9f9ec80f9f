"""SQL from Airflow: results are returned, and each statement is committed once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dynamic_table.operators.run_sql import SqlOperator
from storage_lib import InvalidInputError, open_catalog
from storage_lib.errors import SqlSyntaxError, UnavailableError
from storage_lib.sql import Result
from tests.support.task_context import DictStore, task_context


class RecordingSession:
    """Records statements and the commit identities under which they run."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, int | None]] = []

    def execute(self, text: str, *, commit_user: str | None = None, commit_identifier: int | None = None) -> Result:
        self.asked.append((text.strip(), commit_user, commit_identifier))
        if "outage" in text:
            message = "the broker does not answer"
            raise UnavailableError(message)
        if text.strip().startswith("SELECT"):
            return Result(rows=pa.table({"id": [1, 2, 3], "day": pa.array([0, 1, 2], pa.date32())}))
        return Result(message="done", snapshot_id=7, row_count=5)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> RecordingSession:
    recording = RecordingSession()

    @contextmanager
    def opened(_: SqlOperator) -> Iterator[RecordingSession]:
        yield recording

    monkeypatch.setattr(SqlOperator, "_session", opened)
    return recording


def run(sql: Any, store: DictStore | None = None, **more: Any) -> dict[str, Any]:
    task = SqlOperator(task_id="sql", sql=sql, **more)
    return task.execute(task_context(task, store=store))


def test_several_statements_run_in_order_and_the_last_ones_rows_come_back(session: RecordingSession) -> None:
    result = run("INSERT INTO t VALUES (1); SELECT * FROM t", max_rows="2")

    assert [text for text, *_ in session.asked] == ["INSERT INTO t VALUES (1)", "SELECT * FROM t"]
    assert result["statements"] == [
        {"message": "done", "snapshot": 7, "row_count": 5},
        {"message": "", "snapshot": None, "row_count": 3},
    ]
    assert (result["row_count"], result["rows"]) == (
        3,
        [{"id": 1, "day": "1970-01-01"}, {"id": 2, "day": "1970-01-02"}],
    )
    assert json.loads(json.dumps(result)) == result


def test_a_list_of_statements_and_settings_are_taken(session: RecordingSession) -> None:
    run(["USE shop", "DELETE FROM t WHERE a = ';'"], settings={"table-storage.bucket": "2'"})

    assert [text for text, *_ in session.asked] == [
        "SET 'table-storage.bucket' = '2'''",
        "USE shop",
        "DELETE FROM t WHERE a = ';'",
    ]


def test_each_try_commits_under_the_same_identity_and_each_statement_under_its_own(session: RecordingSession) -> None:
    store = DictStore()
    text = "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)"

    run(text, store)
    run(text, store)

    tries = [session.asked[:2], session.asked[2:]]
    assert tries[0] == tries[1]
    assert len({identifier for *_, identifier in session.asked}) == 2
    assert {user for _, user, _ in session.asked} == {"airflow/dag/run/sql/-1"}


def test_nothing_is_run_if_a_later_statement_is_none(session: RecordingSession) -> None:
    with pytest.raises(SqlSyntaxError, match="line 2"):
        run("INSERT INTO t VALUES (1);\nSELEC * FROM t")
    assert session.asked == []


def test_an_outage_is_told_as_one_and_ends_the_statements(session: RecordingSession) -> None:
    with pytest.raises(UnavailableError):
        run("USE outage; USE shop")
    assert len(session.asked) == 1


@pytest.mark.parametrize("sql", ["", " ", [""], 7])
def test_what_is_no_statement_is_refused(session: RecordingSession, sql: Any) -> None:
    with pytest.raises((InvalidInputError, TypeError)):
        run(sql)


def test_a_statement_that_says_a_secret_is_not_logged(
    session: RecordingSession, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        run("SET 'table-storage.log.kafka.sasl.plain.password' = 'hush'")

    assert "hush" not in caplog.text


@pytest.mark.spark
@pytest.mark.integration
def test_statements_are_run_by_spark_and_a_retry_commits_nothing_twice(warehouse: Path) -> None:
    store = DictStore()
    table = open_catalog(str(warehouse), {"log.system": "none"}).create_table(
        "shop.t", {"id": "INT", "n": "INT"}, primary_key=["id"]
    )
    text = "INSERT INTO t VALUES (1, 10), (2, 20); UPDATE t SET n = n + 1 WHERE id = 1"

    for _ in range(2):
        result = run(text, store, database="shop", master="local[1]")
        assert [each["snapshot"] for each in result["statements"]] == [1, 2]

    assert table.to_arrow().sort_by("id").to_pydict() == {"id": [1, 2], "n": [11, 20]}
    assert table.context.file_store.snapshots.latest_id() == 2
