"""Random lives of a database whose changes are ingested: the table has its rows, whatever the connector leaves out."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.protocol.stream_position import StreamPosition
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic
from tests.table.sources.captured_database import CapturedDatabase, Settings

_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("item", pa.string()),
        ("note", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("pic", pa.binary()),
    ]
)
_SEEDS = 200
_SEEDS_OF_EVERY_RUN = 8


def seeds() -> list[Any]:
    every = range(_SEEDS)
    return [pytest.param(each, marks=[] if each < _SEEDS_OF_EVERY_RUN else [pytest.mark.deep]) for each in every]


@pytest.mark.parametrize("seed", seeds())
def test_a_table_that_follows_a_database_has_its_rows_after_each_pause(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    has_key = chance.random() < 0.75
    settings = Settings.drawn(chance, has_key=has_key)
    compacts = has_key and settings.has_tombstones and chance.random() < 0.5
    topic = RawTopic(batch_size=chance.choice([1, 3, 1000]), is_compacting=compacts)
    database = CapturedDatabase(settings, chance, topic, is_compacted=compacts)
    options = {
        "log.system": chance.choice(["none", "kafka"]),
        "bucket": chance.choice(["1", "2"]),
        **({"deletion-vectors.enabled": "true"} if has_key and chance.random() < 0.3 else {}),
    }
    table = _table(options, has_key=has_key)
    rows_per_commit = chance.choice([1, 4, 1000])

    for pause in range(4):
        for _ in range(chance.randint(0, 25)):
            database.statement()
        if compacts:
            topic.compact()
        topic.ingest(
            table,
            rows_per_commit=rows_per_commit,
            format=settings.format,
            on_truncate="apply",
            before_image="auto" if not settings.is_full or settings.connector == "mysql" else "whole",
        )

        assert _rows(table.to_arrow()) == _sorted(database.expected()), (pause, settings, options)
    if table.log is not None:
        assert _followed(table) == _sorted(database.expected()), (settings, options)


def _table(options: dict[str, str], *, has_key: bool) -> DynamicTable:
    catalog = MemoryCatalog(environment=fake_environment())
    return catalog.create_table("shop.orders", _COLUMNS, primary_key=["id"] if has_key else [], options=options)


def _rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    return _sorted(tuple(row.values()) for row in rows.to_pylist())


def _followed(table: DynamicTable) -> list[tuple[Any, ...]]:
    """Return the rows that the changes of the table's stream leave, each retraction taken from those there are."""
    held: Counter[tuple[Any, ...]] = Counter()
    by_key = bool(table.schema.primary_keys)
    source = table.stream(position=StreamPosition(snapshot_id=0, offsets=LogOffsets()))
    while (batch := source.poll()) is not None:
        for row in batch.to_pylist():
            kind = row.pop("_row_kind")
            values = tuple(row.values())
            if by_key:
                for old in [each for each in held if each[0] == values[0]]:
                    del held[old]
            elif kind in ("-U", "-D"):
                assert held[values] > 0, f"{kind} of {values}, which is not there"
            if kind in ("+I", "+U"):
                held[values] += 1
            elif not by_key:
                held[values] -= 1
    return _sorted(held.elements())


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)
