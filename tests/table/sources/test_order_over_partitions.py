"""A topic gets partitions while a table lags behind: with the source's order in ``sequence.field`` no older row wins.

Random lives are compared with a plain model: the row of a key is that of its last record which was not rejected.
"""

from __future__ import annotations

import json
import logging
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from storage_lib import DynamicTable, MemoryCatalog, reingest
from tests.support.deep_tests import thinned
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import NAME, RawTopic

COLUMNS = {"id": "BIGINT NOT NULL", "name": "VARCHAR(10) NOT NULL", "note": "STRING", "ordinal": "BIGINT"}
ORDERED = {"log.system": "none", "sequence.field": "ordinal", "compaction.keep-deletes": "true"}
TOO_LONG = "a name that is too long"
LSN = "ordinal = value.source.lsn"
FORMATS = ("debezium-json", "debezium-json-schema", "debezium-flattened-json", "upsert-kafka")


def table_of(**options: str) -> DynamicTable:
    catalog = MemoryCatalog(environment=fake_environment())
    return catalog.create_table("shop.items", COLUMNS, primary_key=["id"], options={**ORDERED, **options})


@dataclass
class Source:
    """A database whose changes a connector writes; ``written`` has the sequence, key and row of each record."""

    chance: random.Random
    format: str = "debezium-json"
    is_whole: bool = False
    has_tombstones: bool = False
    leaves_out: float = 0.0
    """Share of the updates that do not change a note, which they leave out then."""

    key_count: int = 12
    topic: RawTopic = field(default_factory=lambda: RawTopic(partition_count=2))
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    written: list[tuple[int, int, dict[str, Any] | None]] = field(default_factory=list)
    lsn: int = 0

    def statement(self) -> None:
        key = self.chance.randrange(self.key_count)
        self.lsn += self.chance.randint(1, 9)
        old = self.rows.pop(key, None)
        if old is not None and self.chance.random() < 0.4:
            self.write(key, "d", old, None)
            return
        name = TOO_LONG if self.chance.random() < 0.1 else self.chance.choice(["tea", "cup", "pot"])
        self.rows[key] = {"id": key, "name": name, "note": self.chance.choice([None, f"n{self.lsn}"])}
        if old is not None and old["note"] is not None and self.chance.random() < self.leaves_out:
            self.rows[key]["note"] = old["note"]
            self.write(key, "u", None, self.rows[key], {**self.rows[key], "note": "__debezium_unavailable_value"})
            return
        self.write(key, "c" if old is None else "u", old, self.rows[key])

    def partition(self, key: int) -> int:
        return zlib.crc32(b"%d" % key) % self.topic.partition_count

    def write(
        self,
        key: int,
        operation: str,
        old: dict[str, Any] | None,
        new: dict[str, Any] | None,
        told: dict[str, Any] | None = None,
    ) -> None:
        self.written.append((self.lsn, key, new))
        spelled = json.dumps({"id": key}, separators=(",", ":")).encode()
        self.topic.tell(spelled, self.value(operation, old, told or new), self.partition(key), self.lsn)
        if operation == "d" and self.has_tombstones:
            self.topic.tell(spelled, None, self.partition(key), self.lsn)

    def value(self, operation: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> bytes | None:
        if self.format == "upsert-kafka":
            return None if new is None else json.dumps(new).encode()
        before = old if self.is_whole or old is None else {"id": old["id"], "name": "", "note": None}
        if self.format == "debezium-flattened-json":
            row = {**((before if new is None else new) or {}), "__op": operation, "__source_lsn": self.lsn}
            return json.dumps({**row, "__deleted": "true" if new is None else "false"}).encode()
        source = {"connector": "mysql" if self.is_whole else "postgresql", "ts_ms": 1, "lsn": self.lsn}
        shown = before if self.is_whole or operation == "d" else None
        payload = {"before": shown, "after": new, "source": source, "op": operation}
        if self.format == "debezium-json":
            return json.dumps(payload).encode()
        return json.dumps({"schema": _SCHEMA, "payload": payload}).encode()

    @property
    def metadata(self) -> str:
        return "ordinal = timestamp" if self.format == "upsert-kafka" else LSN

    def expected(self, *, without: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        newest = {key: (lsn, row) for lsn, key, row in self.written if row is None or row["name"] not in without}
        return sorted((*row.values(), lsn) for lsn, row in newest.values() if row is not None)


def _struct(field_name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": fields, "optional": True, "field": field_name}


def _of(name: str, kind: str) -> dict[str, Any]:
    return {"type": kind, "optional": True, "field": name}


_ROW = [_of("id", "int64"), _of("name", "string"), _of("note", "string")]
_SOURCE = [_of("connector", "string"), _of("ts_ms", "int64"), _of("lsn", "int64")]
_SCHEMA = _struct(
    "", [_struct("before", _ROW), _struct("after", _ROW), _struct("source", _SOURCE), _of("op", "string")]
)


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize("seed", thinned(range(400), 8))
def test_the_newest_row_of_each_key_stays_over_partitions_that_are_added(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    source = Source(
        chance,
        format=chance.choice(FORMATS),
        is_whole=chance.random() < 0.5,
        key_count=chance.choice([3, 12]),
        topic=RawTopic(partition_count=chance.randint(1, 3), batch_size=chance.choice([1, 2, 1000])),
    )
    source.has_tombstones = not source.format.startswith(("debezium-flattened", "upsert")) and chance.random() < 0.5
    table = table_of(bucket=chance.choice(["1", "2"]))
    rejects = chance.random() < 0.7
    rows_per_commit = chance.choice([1, 3, 1000])

    for _ in range(chance.randint(1, 4)):
        for _ in range(chance.randint(0, 3)):
            for _ in range(chance.randint(0, 15)):
                source.statement()
            source.topic.grow(source.topic.partition_count + chance.choice([0, 0, 1, 2]))
        source.topic.ingest(
            table,
            format=source.format,
            metadata=source.metadata,
            on_reject="quarantine" if rejects else "skip",
            rows_per_commit=rows_per_commit,
        )

        assert rows_of(table) == source.expected(without=[TOO_LONG]), (source.format, source.is_whole)
    if rejects and source.format != "upsert-kafka":
        options = {"source.metadata": source.metadata}
        reingest(table, options=options, format=source.format, fixes={"name": "left(name, 10)"})
        shortened = [(key, name[:10], *rest) for key, name, *rest in source.expected()]
        assert rows_of(table) == shortened
        assert table.inspect.rejected_count() == 0


@pytest.mark.parametrize("seed", thinned(range(200), 6))
def test_an_unchanged_value_is_that_of_the_row_before_in_the_source(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    source = Source(
        chance,
        format=chance.choice([each for each in FORMATS if each != "upsert-kafka"]),
        leaves_out=chance.choice([0.2, 0.6]),
        key_count=chance.choice([2, 6]),
        topic=RawTopic(partition_count=chance.randint(1, 3), batch_size=chance.choice([1, 2, 1000])),
    )
    table = table_of()
    read_kept_apart(source, table)

    for _ in range(3):
        for _ in range(chance.randint(1, 3)):
            for _ in range(chance.randint(0, 8)):
                source.statement()
            source.topic.grow(source.topic.partition_count + chance.choice([0, 0, 1]))
        read_kept_apart(source, table, chance.choice([1, 1000]))

        had = {(lsn, key, *row.values()) for lsn, key, row in source.written if row is not None}
        assert {(row[-1], row[0], *row[:-1]) for row in rows_of(table)} <= had
    left = reingest(table, options={"source.metadata": LSN}, format=source.format, fixes={"name": "left(name, 10)"})

    # The row of an older record may have been deleted since, or have been written again with null.
    reasons = ("no row of this key to take it from", "the table has null there")
    assert all(any(known in reason for known in reasons) for reason in left.remaining.values())
    assert rows_of(table) == [(key, name[:10], *rest) for key, name, *rest in source.expected()]


def read_kept_apart(source: Source, table: DynamicTable, rows_per_commit: int = 1000) -> None:
    source.topic.ingest(
        table, rows_per_commit=rows_per_commit, format=source.format, metadata=source.metadata, on_reject="quarantine"
    )


def test_without_the_order_of_the_source_an_older_row_wins_and_the_log_warns(caplog: pytest.LogCaptureFixture) -> None:
    source = Source(random.Random(1))  # noqa: S311  chance, not secrets
    plain = MemoryCatalog(environment=fake_environment()).create_table("shop.items", COLUMNS, primary_key=["id"])
    ordered = table_of()
    source.topic.ingest(plain, metadata=LSN)
    source.topic.ingest(ordered, metadata=LSN)
    write_over_growth(source)

    with caplog.at_level(logging.WARNING):
        source.topic.ingest(plain, metadata=LSN)
        source.topic.ingest(ordered, metadata=LSN)
    again = source.topic.ingest(plain, metadata=LSN)

    assert [rows_of(each)[0][1] for each in (plain, ordered)] == ["old", "new"]
    assert again.commit_count == 0
    (warning,) = [each.getMessage() for each in caplog.records if "partitions" in each.getMessage()]
    assert warning.startswith(f"topic {NAME!r} had 2 partitions when table shop.items read it last, and has 3 now")
    assert "source.metadata='<column> = value.source.lsn'" in warning


def test_a_table_that_drops_deletions_in_compactions_warns_of_it(caplog: pytest.LogCaptureFixture) -> None:
    source, table = Source(random.Random(1)), table_of(**{"compaction.keep-deletes": "false"})  # noqa: S311  chance
    source.topic.ingest(table, metadata=LSN)
    write_over_growth(source)

    with caplog.at_level(logging.WARNING):
        source.topic.ingest(table, metadata=LSN)

    assert ["compaction.keep-deletes=true" in each.getMessage() for each in caplog.records] == [True]
    assert rows_of(table)[0][1] == "new"


def write_over_growth(source: Source) -> None:
    """Write a row, add a partition, and write the row again, into a partition that is read before."""
    hashes = {each: zlib.crc32(b"%d" % each) for each in range(99)}
    key = next(each for each, of in hashes.items() if of % 2 == 1 and of % 3 == 0)
    source.lsn = 1
    source.write(key, "c", None, {"id": key, "name": "old", "note": None})
    source.topic.grow(3)
    source.lsn = 2
    source.write(key, "u", None, {"id": key, "name": "new", "note": None})
