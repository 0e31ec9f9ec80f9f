"""``SyncDatabaseOperator`` over a real broker: what it announces, again by its retry, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.operators.run_sync import SyncDatabaseOperator, TopicsStoppedError
from storage_lib import InvalidInputError, open_catalog
from tests.support.shared_server import unique_name
from tests.support.spark_topics import produce
from tests.support.task_context import task_context

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
