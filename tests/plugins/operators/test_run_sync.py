"""``SyncDatabaseOperator`` over a real broker: what it announces, again by its retry, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.operators.check_sync import CheckSyncOperator
from dynamic_table.operators.run_sync import SyncDatabaseOperator
from dynamic_table.policies.stopped_topics import TopicsStoppedError
from storage_lib import InvalidInputError, open_catalog
from storage_lib.errors import UnavailableError
from storage_lib.sync.synced_table import SyncedTable
from tests.support.shared_server import unique_name
from tests.support.spark_topics import produce
from tests.support.task_context import DictStore, announced, task_context

if TYPE_CHECKING:
    from local_kafka import LocalKafka

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.integration]

FIELDS = [{"field": "id", "type": "int64", "optional": False}]


def change(item: int) -> dict[str, object]:
    sides = [{"field": side, "type": "struct", "fields": FIELDS, "optional": True} for side in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string", "optional": False}]}
    return {"schema": schema, "payload": {"before": None, "after": {"id": item}, "op": "c"}}


@pytest.fixture
def source(kafka: LocalKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the beginning of the topics' names; the connection has the broker."""
    extra = {"warehouse": str(tmp_path), "options": {"log.kafka.bootstrap.servers": kafka.bootstrap_servers}}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    return unique_name(tmp_path)


def operator(source: str, **more: Any) -> SyncDatabaseOperator:
    given = {"topics": f"{source}.*", "into": "lake", "table_options": {"log.system": "none"}, **more}
    return SyncDatabaseOperator(task_id="sync", **given)


def test_each_table_with_new_records_is_announced(source: str, kafka: LocalKafka) -> None:
    produce(kafka.bootstrap_servers, f"{source}.items", change(1), change(2))
    produce(kafka.bootstrap_servers, f"{source}.users", change(1))
    task = operator(source)

    first = task.execute(task_context(task))
    produce(kafka.bootstrap_servers, f"{source}.users", change(2))
    second = task.execute(task_context(task))

    assert [(each["table"], each["created"], each["rows"], each["version"]) for each in first] == [
        ("lake.items", True, 2, 1),
        ("lake.users", True, 1, 1),
    ]
    assert [(each["table"], each["rows"], each["version"]) for each in second] == [
        ("lake.items", 0, None),
        ("lake.users", 1, 2),
    ]


def test_a_topic_that_stops_fails_the_task_after_all_others_were_read(
    source: str, kafka: LocalKafka, tmp_path: Path
) -> None:
    produce(kafka.bootstrap_servers, f"{source}.items", {"no": "change"})
    produce(kafka.bootstrap_servers, f"{source}.users", change(1))
    task = operator(source)

    with pytest.raises(TopicsStoppedError, match=rf"1 topics stopped, .*\n{source}.items: .*no schema"):
        task.execute(task_context(task))

    assert open_catalog(str(tmp_path)).list_tables() == ["lake.users"]


def test_the_others_are_announced_where_a_topic_stops_and_the_check_fails(source: str, kafka: LocalKafka) -> None:
    produce(kafka.bootstrap_servers, f"{source}.items", {"no": "change"})
    produce(kafka.bootstrap_servers, f"{source}.users", change(1))
    task = operator(source, on_stopped="report")
    context = task_context(task)

    result = task.execute(context)

    assert [each["uri"] for each in announced(context)] == ["dynamic-table://lake/users"]
    check = CheckSyncOperator(task_id="check", result=result)
    with pytest.raises(TopicsStoppedError, match=rf"1 topics stopped, .*\n{source}.items: .*no schema"):
        check.execute(task_context(check))


def test_the_last_of_several_tries_announces_what_all_have_committed(
    source: str, kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(kafka.bootstrap_servers, f"{source}.items", change(1))
    produce(kafka.bootstrap_servers, f"{source}.users", change(1))
    read_some = SyncedTable._read_some

    def unavailable(table: SyncedTable, topic: str) -> bool:
        if topic.endswith("items"):
            message = "the broker is away"
            raise UnavailableError(message)
        return read_some(table, topic)

    monkeypatch.setattr(SyncedTable, "_read_some", unavailable)
    task, store = operator(source, on_stopped="report"), DictStore()
    with pytest.raises(UnavailableError):
        task.execute(task_context(task, store=store, max_tries=1, try_number=1))

    last = task_context(task, store=store, max_tries=1, try_number=2)
    result = task.execute(last)

    assert [(each["uri"], each["version"]) for each in announced(last)] == [("dynamic-table://lake/users", 1)]
    assert [each["errors"] for each in result] == [{f"{source}.items": "the broker is away"}, {}]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Great Expectations imports deprecated names
def test_rows_that_do_not_meet_an_expectation_are_kept_apart(source: str, kafka: LocalKafka, tmp_path: Path) -> None:
    produce(kafka.bootstrap_servers, f"{source}.items", change(1), change(2))
    small = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "max_value": 1}}
    expectations = {"lake.items": [{**small, "severity": "reject"}]}
    task = operator(source, expectations=expectations, options={"source.on-reject": "quarantine"})

    (result,) = task.execute(task_context(task, folder=tmp_path))

    assert (result["rows"], result["rejected"]) == (1, 1)


@pytest.mark.parametrize("result", [None, {}, "None", [{"table": "lake.items"}]])
def test_a_check_of_something_else_is_refused(result: object) -> None:
    check = CheckSyncOperator(task_id="check", result=result)

    with pytest.raises(InvalidInputError, match="give the output of a SyncDatabaseOperator"):
        check.execute(task_context(check))


def test_a_check_passes_where_no_topic_has_stopped(source: str, kafka: LocalKafka) -> None:
    produce(kafka.bootstrap_servers, f"{source}.users", change(1))
    task = operator(source, on_stopped="report")
    check = CheckSyncOperator(task_id="check", result=task.execute(task_context(task)))

    check.execute(task_context(check))

    assert check.result[0]["errors"] == {}


@pytest.mark.parametrize(
    "more",
    [
        {"options": {"log.kafka.bootstrap.servers": "elsewhere:9092"}},
        {"table_options": {"log.schema-registry.url": "http://elsewhere"}},
        {"table_options": {"column.a.expression": "read_files('/etc/passwd')"}},
    ],
)
def test_a_form_reaches_no_other_server(source: str, more: dict[str, Any]) -> None:
    task = operator(source, **more)

    with pytest.raises(InvalidInputError):
        task.execute(task_context(task))
