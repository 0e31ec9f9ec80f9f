"""The first record whose key has other columns than its table's: judged record by record, and by the code."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.log_store.capture.captured_changes import CapturedChanges
from storage_lib.log_store.external.changed_key import first_other_key

COLUMNS = ("id", "k", "payload", "schema", "with : colon")
VALUES = (0, -1.5e3, "", "a", '"', "\\", ', "x": 1', '{"schema": {}, "payload": {"id": 1}}', True, None, [1, {"k": 2}])


@pytest.mark.parametrize("seed", range(200))
def test_it_is_found_whatever_the_keys_hold(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    ours = tuple(chance.sample(COLUMNS, chance.randint(0, 2)))
    names = [ours if chance.random() < 0.8 else tuple(chance.sample(COLUMNS, chance.randint(0, 3))) for _ in range(20)]
    keys = pa.array([key_of(each, chance) for each in names], pa.binary())
    gives_rows = [chance.random() < 0.8 for _ in names]

    found = first_other_key(keys, changes_of(gives_rows), ours, None)

    wrong = [i for i, each in enumerate(names) if gives_rows[i] and {*each} != {*ours}]
    assert (None if found is None else (found[0], {*found[1]})) == (
        (wrong[0], {*names[wrong[0]]}) if wrong else None
    ), [each.as_py() for each in keys]


def test_keys_that_do_not_name_their_columns_tell_nothing() -> None:
    keys = pa.array([b"7", b'"a"', b"\xff", b"{", b"{}"], pa.binary())

    assert first_other_key(keys, changes_of([True] * 5), ("id",), None) is None


def key_of(names: tuple[str, ...], chance: random.Random) -> bytes | None:
    """Write a key as some program does: without names, none."""
    if not names:
        return None
    values = {name: chance.choice(VALUES) for name in names}
    separators = chance.choice(((",", ":"), (", ", " : ")))
    fields = [{"field": name, "type": "string"} for name in names]
    match chance.randrange(4):
        case 0:
            return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": values}).encode()
        case 1:
            return json.dumps({"payload": values, "schema": {"type": "struct", "fields": fields}}).encode()
        case 2:
            return json.dumps({"schema": None, "payload": values}).encode()
    if names in {("schema", "payload"), ("payload", "schema")}:
        return json.dumps({"schema": {}, "payload": values}).encode()
    return json.dumps(values, separators=separators).encode()


def changes_of(gives_rows: list[bool]) -> CapturedChanges:
    places = np.flatnonzero(gives_rows)
    schema = pa.schema([("id", pa.int64())])
    return CapturedChanges(
        rows=pa.RecordBatch.from_arrays([pa.nulls(len(places), pa.int64())], schema=schema),
        kinds=pa.array(np.zeros(len(places), np.int8)),
        record_indices=places,
    )
