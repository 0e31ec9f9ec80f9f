"""Avro records decoded in bulk equal the values that fastavro encoded one by one."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import fastavro
import numpy as np
import pytest

from storage_lib.log_store.codec.avro_cursor import AvroCursor, with_names_spelled_out

INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "double", "type": ["double", "null"]},
        {"name": "single", "type": {"type": "float", "connect.name": "x"}},
        {"name": "flag", "type": "boolean"},
        {"name": "list", "type": {"type": "array", "items": ["null", {"type": "array", "items": "int"}]}},
        {"name": "map", "type": ["null", {"type": "map", "values": "bytes"}]},
        {"name": "fixed", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "enum", "type": {"type": "enum", "name": "Letter", "symbols": ["A", "B"]}},
        {"name": "nothing", "type": "null"},
    ],
}
OUTER = {
    "type": "record",
    "name": "a.b.Outer",
    "fields": [
        {"name": "first", "type": ["null", INNER]},
        {"name": "passed over", "type": ["null", "Inner"]},
        {"name": "second", "type": ["null", "a.b.Inner"]},
        {"name": "word", "type": "string"},
        {"name": "behind", "type": ["int", "string"]},
    ],
}


def inner(random: Random) -> dict[str, Any]:
    lists = [None if random.random() < 0.3 else [random.randrange(-9, 9)] * random.randrange(3) for _ in range(3)]
    return {
        "id": random.randrange(-(2**63), 2**63),
        "text": random.choice([None, "", "é" * random.randrange(200)]),
        "double": random.choice([None, random.random()]),
        "single": 0.5,
        "flag": random.random() < 0.5,
        "list": lists[: random.randrange(4)],
        "map": random.choice([None, {str(key): b"v" * key for key in range(random.randrange(4))}]),
        "fixed": b"\x00\x01\x02\xff",
        "enum": random.choice("AB"),
        "nothing": None,
    }


def laid_out(records: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    data = np.frombuffer(b"".join(records), np.uint8)
    return data, np.cumsum([0, *(len(record) for record in records)])[:-1].astype(np.int64)


@pytest.mark.parametrize("count", [0, 1, 500])
def test_what_fastavro_wrote_is_read(count: int) -> None:
    random, parsed = Random(count), fastavro.parse_schema(OUTER)  # noqa: S311  the same draws at every run
    values = [
        {
            **{name: random.choice([None, inner(random)]) for name in ("first", "passed over", "second")},
            "word": "w" * number,
            "behind": number,
        }
        for number in range(count)
    ]
    records = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        records.append(out.getvalue())

    found = AvroCursor(*laid_out(records)).fields(with_names_spelled_out(OUTER), ("first", "second", "word"))

    assert list(found) == ["first", "second", "word"]
    for name in found:
        rows = found[name].to_pylist()
        for row in rows:
            if isinstance(row, dict) and row["map"] is not None:
                row["map"] = dict(row["map"])
        assert rows == [value[name] for value in values]


def test_an_array_may_come_in_blocks_that_tell_their_size() -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}]}
    blocks = [bytes([0x04, 2, 4, 0x01, 2, 6, 0]), bytes([0]), bytes([0x03, 0x04, 8, 10, 0])]

    found = AvroCursor(*laid_out(blocks)).fields(record, ("a",))

    assert found["a"].to_pylist() == [[1, 2, 3], [], [4, 5]]


@pytest.mark.parametrize(
    ("of", "content", "complaint"),
    [
        ("string", b"\x08ab", "bytes end before"),
        ("string", b"\x01", "bytes end before"),
        ("double", b"\x00", "bytes end before"),
        ("boolean", b"", "bytes end before"),
        (["null", "int"], b"\x04\x02", "invalid branch of a union"),
        (["int", "string"], b"\x00\x02", "union of several types"),
        ("string", b"\xfe" + 8 * b"\xff" + b"\x01ab", "bytes end before"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f\x00", "more entries than bytes"),
        ({"type": "array", "items": "null"}, 9 * b"\xff" + b"\x01\x00\x00", "more entries than bytes"),
    ],
)
def test_bytes_that_are_not_of_the_schema_are_refused(of: Any, content: bytes, complaint: str) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": of}]}

    with pytest.raises(ValueError, match=complaint):
        AvroCursor(*laid_out([content])).fields(with_names_spelled_out(record), ("a",))


def test_a_schema_of_itself_is_refused() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}

    with pytest.raises(ValueError, match="'Node' is recursive"):
        with_names_spelled_out(node)
