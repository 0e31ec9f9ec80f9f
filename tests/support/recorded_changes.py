"""Records of a real Debezium, from ``tests/cdc/recorded``, so that a test needs neither it nor a database.

``python -m tests.cdc.record_debezium`` records them anew. A folder holds the records of one mode, with a file per table
of ``tests/cdc/recorded_tables.py`` in the order of its topic; ``rows`` holds what the database itself said.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = [
    "RECORDED",
    "RecordedRecord",
    "TableState",
    "lines_of",
    "recorded",
    "recorded_schemas",
    "recorded_states",
]

RECORDED = Path(__file__).parents[1] / "cdc" / "recorded"


@dataclass(frozen=True, slots=True)
class RecordedRecord:
    """A record as it was in Kafka."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Debezium names the other key in them where a key has moved."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table after a step: all values as PostgreSQL's text, in UTC.

    A record whose ``source.lsn`` is less than ``lsn`` belongs to this state or an earlier one.
    """

    step: tuple[str, ...]
    lsn: int
    types: Mapping[str, str]
    rows: tuple[Mapping[str, str | None], ...]


def recorded(mode: str, table: str, *, home: Path = RECORDED) -> list[RecordedRecord]:
    """Return the records of a topic, in order; ``MODES`` of ``tests/cdc/debezium_modes.py`` names the modes."""
    lines = (home / mode / f"{table}.jsonl").read_text("utf-8").splitlines()
    return [_record(json.loads(line)) for line in lines]


def recorded_schemas(*, home: Path = RECORDED) -> dict[int, str]:
    """Return the registry's schemas by their ids, those of the Avro records."""
    stored = json.loads((home / "registry.json").read_text("utf-8"))
    return {int(number): json.dumps(schema) for number, schema in stored.items()}


def recorded_states(table: str, *, home: Path = RECORDED) -> list[TableState]:
    """Return what the database said of a table after each step that concerned it, the first before any step."""
    lines = (home / "rows" / f"{table}.jsonl").read_text("utf-8").splitlines()
    return [
        TableState(tuple(each["step"]), each["lsn"], each["types"], tuple(each["rows"]))
        for each in map(json.loads, lines)
    ]


def _line(record: RecordedRecord, *, is_text: bool) -> str:
    """Return a line of a file; what is not text is written in base64."""
    spelled = {name: _spelled(part, is_text=is_text) for name, part in (("key", record.key), ("value", record.value))}
    place = {"offset": record.offset, "timestamp": record.timestamp}
    headers = {"headers": dict(record.headers)} if record.headers else {}
    return json.dumps({**place, **spelled, **headers}, ensure_ascii=False)


def _spelled(part: bytes | None, *, is_text: bool) -> object:
    if part is None:
        return None
    return part.decode() if is_text else {"base64": base64.b64encode(part).decode()}


def _record(line: Mapping[str, Any]) -> RecordedRecord:
    key, value = _bytes(line["key"]), _bytes(line["value"])
    return RecordedRecord(line["offset"], line["timestamp"], key, value, line.get("headers", {}))


def _bytes(part: str | Mapping[str, str] | None) -> bytes | None:
    if part is None:
        return None
    return part.encode() if isinstance(part, str) else base64.b64decode(part["base64"])


def lines_of(records: Iterable[RecordedRecord], *, is_text: bool) -> str:
    """Return the content of a file."""
    return "".join(f"{_line(record, is_text=is_text)}\n" for record in records)
