"""The recorded records of a real Debezium agree with what its database said, and have what makes them hard."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cdc.debezium_modes import MODES
from tests.cdc.record_debezium import tables_of
from tests.cdc.recorded_tables import TABLES
from tests.support.recorded_changes import RecordedRecord, recorded, recorded_schemas, recorded_states

UNSENT = "__debezium_unavailable_value"
OTHER_IDENTITY = "two_keys"
"""The table whose replica identity becomes an index of another column than its key's."""
JSON_WITH_KEYS = [
    (mode, table)
    for mode in MODES
    for table in tables_of(mode)
    if MODES[mode].form != "avro" and table not in {"keyless", "appended", OTHER_IDENTITY}
]


@pytest.mark.parametrize(("mode", "table"), JSON_WITH_KEYS)
def test_the_keys_that_the_records_leave_are_those_of_the_database(mode: str, table: str) -> None:
    records = recorded(mode, table)

    held: set[str] = set()
    for record in records:
        key, value = payload(record.key), payload(record.value)
        if value is not None and value.get("op") == "t":
            held.clear()
        elif value is None or value.get("op") == "d" or value.get("__deleted") == "true":
            held.discard(str(key["id"]))
        else:
            held.add(str(value.get("after", value)["id"]))

    last = {str(row["id"]) for row in recorded_states(table)[-1].rows}
    assert held >= last
    if not MODES[mode].is_flattened:  # a TRUNCATE is no row
        assert held == last


@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.form == "avro"])
def test_the_schema_of_every_avro_record_is_recorded(mode: str) -> None:
    schemas = recorded_schemas()

    records = [record for table in tables_of(mode) for record in recorded(mode, table)]

    parts = [part for record in records for part in (record.key, record.value)]
    numbers = {int.from_bytes(part[1:5], "big") for part in parts if part is not None and part[:1] == b"\x00"}
    assert numbers <= schemas.keys()
    assert len(numbers) >= 2 * len(tables_of(mode)) - 2


def test_every_table_has_its_first_rows_and_those_after_each_step() -> None:
    for table in TABLES:
        states = recorded_states(table)
        assert len(states) >= 2
        assert [state.lsn for state in states] == sorted(state.lsn for state in states)


def test_values_outside_the_row_are_not_sent_and_rows_before_are_not_whole() -> None:
    changes = [(record, payload(record.value)) for record in recorded("json", "orders")]

    update = next(value for _, value in changes if value and value["op"] == "u")
    delete = next(value for _, value in changes if value and value["op"] == "d")

    assert (update["before"], update["after"]["note"]) == (None, UNSENT)
    # Nobody has written this time of row 2; the column can't be null, and Debezium takes its default.
    assert (delete["before"]["at"], delete["before"]["item"]) == ("2026-01-01T10:00:00.123456Z", None)


def test_a_moved_key_is_a_deletion_and_an_insertion_that_does_not_have_all_values() -> None:
    deletion, tombstone, insertion = (
        record for record in recorded("json", "orders") if moved(record) in {'{"id":5}', '{"id":1}'}
    )

    after = payload(insertion.value)["after"]
    assert payload(deletion.value)["op"] == "d"
    assert (tombstone.key, tombstone.value) == (deletion.key, None)
    assert (payload(insertion.value)["op"], after["id"], after["note"]) == ("c", 5, UNSENT)


def test_a_truncation_has_neither_key_nor_row() -> None:
    truncation = next(each for each in recorded("json", "orders") if each.value and payload(each.value)["op"] == "t")

    assert truncation.key is None
    assert (payload(truncation.value)["before"], payload(truncation.value)["after"]) == (None, None)


def test_an_identity_without_the_key_makes_debezium_invent_keys() -> None:
    deletion = [record for record in recorded("json", OTHER_IDENTITY) if record.value and not moved(record)][-2]

    before = payload(deletion.value)["before"]
    assert payload(deletion.key) == {"region": "", "id": 0}
    assert (before["region"], before["id"], before["code"]) == ("", 0, "s1")
    assert {row["region"] for row in recorded_states(OTHER_IDENTITY)[-1].rows} == {"east", "north"}


def payload(part: bytes | None) -> Any:
    found = None if part is None else json.loads(part)
    return found["payload"] if isinstance(found, dict) and found.keys() == {"schema", "payload"} else found


def moved(record: RecordedRecord) -> str | None:
    return record.headers.get("__debezium.newkey") or record.headers.get("__debezium.oldkey")
