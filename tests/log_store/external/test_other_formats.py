"""A topic of another format than its reader was told is refused, with the name of the format that it looks like."""

from __future__ import annotations

import json

import pytest

from storage_lib import CorruptFileError, MemoryCatalog
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic

ROW = {"id": 1, "name": "tea"}
ENVELOPE = {"before": None, "after": ROW, "op": "c", "source": {"connector": "postgresql"}}
COLUMNS = [
    {"field": "id", "type": "int32", "optional": False},
    {"field": "name", "type": "string", "optional": True},
]
SIDES = [{"field": side, "type": "struct", "fields": COLUMNS, "optional": True} for side in ("before", "after")]
OF_ROW = {"type": "struct", "fields": COLUMNS}
OF_ENVELOPE = {"type": "struct", "fields": [*SIDES, {"field": "op", "type": "string"}]}
RECORDS = {
    "debezium-json": ENVELOPE,
    "debezium-json-schema": {"schema": OF_ENVELOPE, "payload": ENVELOPE},
    "debezium-flattened-json": {**ROW, "__op": "c"},
    "debezium-flattened-json-schema": {"schema": OF_ROW, "payload": ROW},
    "the JSON of Canal or Maxwell": {
        "data": [ROW],
        "type": "INSERT",
        "database": "shop",
        "table": "items",
        "old": None,
    },
    "the JSON of Canal or Maxwell, ": {"database": "shop", "table": "items", "type": "insert", "data": ROW},
    "Avro of a schema registry": b"\x00\x00\x00\x00\x07\x02\x06tea",
}
FORMATS = (
    "debezium-json",
    "debezium-json-schema",
    "debezium-flattened-json",
    "debezium-flattened-json-schema",
    "upsert-kafka",
)
A_ROW_IS_A_ROW = {("upsert-kafka", "debezium-flattened-json")}
"""The reader of newest rows takes those that Debezium has flattened."""


@pytest.mark.parametrize("like", RECORDS)
@pytest.mark.parametrize("format_", FORMATS)
def test_a_record_of_another_format_is_refused_by_the_name_of_its_own(format_: str, like: str) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    # A row of nulls would fit.
    columns = {"id": "INT NOT NULL", "name": "STRING"}
    table = catalog.create_table("shop.items", columns, primary_key=["id"], options={"log.system": "none"})
    topic, record = RawTopic(), RECORDS[like]
    topic.tell(b'{"id":1}', record if isinstance(record, bytes) else json.dumps(record).encode())

    if like == format_ or (format_, like) in A_ROW_IS_A_ROW:
        topic.ingest(table, format=format_)
        assert table.refresh().to_arrow().to_pylist() == [ROW]
        return
    with pytest.raises(CorruptFileError, match=rf"not a {format_} change .*The record looks like (the format )?{like}"):
        topic.ingest(table, format=format_)
    assert table.refresh().count() == 0


def test_a_table_may_have_columns_with_the_names_of_an_envelope() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = {"op": "INT NOT NULL", "before": "STRING", "after": "STRING"}
    table = catalog.create_table("shop.moves", columns, primary_key=["op"], options={"log.system": "none"})
    topic = RawTopic()
    topic.tell(b'{"op":1}', json.dumps({"op": 1, "before": "here", "after": "there"}).encode())

    topic.ingest(table, format="upsert-kafka")

    assert table.refresh().to_arrow().to_pylist() == [{"op": 1, "before": "here", "after": "there"}]
