"""Records are grouped by schema, however their writer spells JSON."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from storage_lib.log_store.capture.json_payloads import payloads

SCHEMAS: tuple[dict[str, Any] | None, ...] = (
    {"type": "struct", "fields": [{"type": "int32", "field": "a"}]},
    {"type": "struct", "fields": [{"type": "int32", "field": "payload", "default": ',"payload":'}]},
    None,
)


def spelled(chance: random.Random, schema: object, payload: object) -> str:
    """Write a record as one of several writers does."""
    record = {"schema": schema, "payload": payload}
    if chance.random() < 0.3:
        record = dict(reversed(record.items()))
    separators = chance.choice(((",", ":"), (", ", ": "), (" ,\n", " :\t")))
    end = chance.choice(("", "", "\n"))
    return chance.choice(("", "", " ")) + json.dumps(record, separators=separators) + end


@pytest.mark.parametrize("seed", range(20))
def test_each_record_is_in_one_group_with_its_schema_and_its_payload(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    records = [(chance.choice(SCHEMAS), {"after": {"a": number, "payload": "}"}}) for number in range(30)]
    texts = [spelled(chance, *record) for record in records]

    groups = payloads(pa.array(texts, pa.string()))

    found = {
        index: (group.schema, json.loads(text))
        for group in groups
        for index, text in zip(group.indices.tolist(), group.texts.to_pylist(), strict=True)
    }
    assert sum(len(group.indices) for group in groups) == len(records)
    assert [found[index] for index in range(len(records))] == records


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("payload_is_first", [False, True])
def test_records_of_one_writer_and_schema_are_one_group(
    separators: tuple[str, str],
    payload_is_first: bool,  # noqa: FBT001
) -> None:
    """One group for each record of a writer that puts spaces between made ``ingest`` take hours for 100,000."""
    records = [{"schema": SCHEMAS[0], "payload": {"after": {"a": number}}} for number in range(50)]
    ordered = [dict(reversed(each.items())) if payload_is_first else each for each in records]

    groups = payloads(pa.array([json.dumps(each, separators=separators) for each in ordered]))

    assert [len(group.indices) for group in groups] == [50]
