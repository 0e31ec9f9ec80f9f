"""What a real Debezium wrote of a MariaDB is followed: after each step the tables have the rows of the database."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from storage_lib import Catalog, MemoryCatalog
from storage_lib.sync.sync_database import SyncResult, sync_topics
from storage_lib.sync.synced_table import SyncSettings
from storage_lib.sync.topic_rules import TopicRules
from tests.cdc.mariadb_rows import spelled
from tests.cdc.record_mariadb import HOME
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic
from tests.support.raw_topics import RawTopics
from tests.support.recorded_changes import TableState, recorded, recorded_states

MODES = {
    "json": "debezium-json",
    "json-schema": "debezium-json-schema",
    "json-schema-as-text": "debezium-json-schema",
    "flattened-json-schema": "debezium-flattened-json-schema",
}
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a value without a zone
DECLARED = {
    "every_type": """id INT NOT NULL, a_tiny SMALLINT, a_bool SMALLINT, a_boolean SMALLINT, a_utiny SMALLINT,
        a_small SMALLINT, a_usmall INT, a_medium INT, a_umedium INT, an_int INT, a_uint BIGINT, a_big BIGINT,
        a_ubig BIGINT, a_float FLOAT, a_double DOUBLE, a_decimal DECIMAL(10, 2), a_udecimal DECIMAL(10, 2),
        a_wide DECIMAL(38, 10), a_zerofill BIGINT, a_bit BOOLEAN, bits BYTES, every_bit BYTES, a_char CHAR(3),
        a_varchar VARCHAR(20), a_text STRING, a_long STRING, a_binary BINARY(4), a_varbinary VARBINARY(20),
        a_blob BYTES, a_date DATE, a_time TIME(6), a_time_micros TIME(6), a_datetime TIMESTAMP(0),
        a_datetime_millis TIMESTAMP(3), a_datetime_micros TIMESTAMP(6), a_timestamp TIMESTAMP_LTZ(6),
        a_timestamp_micros TIMESTAMP_LTZ(6), a_year INT, an_enum STRING, a_set STRING, a_json STRING, a_uuid STRING""",
    "unsigned_key": "id BIGINT NOT NULL, name STRING",
}
"""Tables for records that carry no schemas, as the database has them."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("table", ["every_type", "orders", "keyless", "unsigned_key"])
def test_after_each_step_the_table_has_the_rows_of_the_database(mode: str, table: str) -> None:
    if (mode == "json" and table not in DECLARED) or (mode.startswith("flattened") and table == "keyless"):
        pytest.skip("such records don't have it")
    catalog, topic = memory(mode, table), RawTopic()
    records, numbers, given = recorded(mode, table, home=HOME), transactions(table), 0

    for state in recorded_states(table, home=HOME):
        while given < len(records) and numbers[given] < state.lsn:
            topic.tell(records[given].key, records[given].value)
            given += 1
        result = sync(catalog, table, topic, MODES[mode])

        assert result.errors == ()
        assert differences(catalog, table, state) == []
    assert given == len(records)


def test_values_that_no_column_holds_are_refused_or_replaced_as_an_option_says() -> None:
    catalog, topic = memory("json-schema", "special_values"), RawTopic()
    for record in recorded("json-schema", "special_values", home=HOME):
        topic.tell(record.key, record.value)

    refused = sync(catalog, "special_values", topic, MODES["json-schema"])
    clamped = sync(catalog, "special_values", topic, MODES["json-schema"], {"source.out-of-range": "clamp"})

    assert "column 'a_time'" in str(refused.errors[0])
    assert clamped.errors == ()
    rows = {row["id"]: row for row in catalog.load_table("shop.special_values").to_arrow().to_pylist()}
    assert (rows[1]["a_time"], rows[2]["a_time"]) == (dt.time(), dt.time(23, 59, 59, 999_000))
    # Debezium writes null for dates of zeros, the first day if the column is NOT NULL, and 1900 for the year 0.
    assert (rows[2]["a_date"], rows[2]["required_date"], rows[2]["a_year"]) == (None, EPOCH.date(), 1900)


def memory(mode: str, table: str) -> Catalog:
    catalog = MemoryCatalog(environment=fake_environment())
    if mode == "json":
        columns = dict(each.strip().split(" ", 1) for each in _parts(DECLARED[table]))
        catalog.create_table(f"shop.{table}", columns, primary_key=["id"], options={"log.system": "none"})
    return catalog


def _parts(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    found, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


def sync(
    catalog: Catalog, table: str, topic: RawTopic, format_: str, options: dict[str, str] | None = None
) -> SyncResult:
    settings = SyncSettings(
        options={
            "kafka.bootstrap.servers": "nowhere:9092",
            "log.format": format_,
            "source.on-truncate": "apply",
            "debezium.time-precision-mode": "adaptive_time_microseconds",
            "debezium.binary-handling-mode": "base64",
            **(options or {}),
        },
        table_options={"log.system": "none"},
        rows_per_turn=10,
        skip_expired=False,
        change_tracking=None,
    )
    rules = TopicRules(topics=("my.shop.*",), into="shop")
    return sync_topics(catalog, RawTopics({f"my.shop.{table}": topic}), rules, settings, workers=1)


def transactions(table: str) -> list[int]:
    """Return the number of each record's transaction, 0 for the rows of the snapshot; the same in all modes."""
    found: list[int] = []
    for record in recorded("json", table, home=HOME):
        if record.value is None:
            found.append(found[-1])  # the tombstone of a deletion
        else:
            gtid = json.loads(record.value)["source"]["gtid"]
            found.append(0 if gtid is None else int(gtid.rpartition("-")[2]))
    return found


def differences(catalog: Catalog, table: str, state: TableState) -> list[str]:
    """Compare the columns that both have; the rows of a table without a key in the order of their values."""
    found = catalog.load_table(f"shop.{table}").to_arrow()
    names = [name for name in found.column_names if name in state.types and state.types[name] != "point"]
    theirs = [{name: row[name] for name in names} for row in state.rows]
    ours = [{name: row[name] for name in names} for row in found.to_pylist()]
    if len(ours) != len(theirs):
        return [f"{len(ours)} rows instead of {len(theirs)}"]
    order = {json.dumps(row) if table == "keyless" else row["id"]: row for row in theirs}
    said = []
    for mine in sorted(ours, key=lambda row: str(row.get("id", row))):
        for name, text in _of(mine, order, table).items():
            value = spelled(text, state.types[name], mine[name])
            if mine[name] != value and not is_left_out(table, name, mine):
                said.append(f"{mine.get('id')}.{name}: {mine[name]!r} instead of {value!r}")
    return said


def _of(mine: dict[str, Any], rows: dict[Any, dict[str, Any]], table: str) -> dict[str, Any]:
    if table != "keyless":
        return rows[str(mine["id"])]
    return rows[json.dumps({name: None if value is None else str(value) for name, value in mine.items()})]


def is_left_out(table: str, name: str, mine: dict[str, Any]) -> bool:
    """Whether a row that has not changed since has the old value of a renamed column, or none of a new one."""
    return table == "orders" and mine[name] is None and name in {"qty", "article"}
