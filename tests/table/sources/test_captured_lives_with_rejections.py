"""Random lives of a database with rows that the table can't hold: each row is one that the database had.

row of a key           that after the last record of the key that was not rejected
rejected records       those of a row that does not fit, and those that leave out a value which a rejected record of
                       their key has, or may have, changed
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.deep_tests import thinned
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic
from tests.table.sources.captured_database import MISFITS, NONE, CapturedDatabase, Row, Settings, Written

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "item": "VARCHAR(10) NOT NULL",
    "note": "VARCHAR(50)",
    "price": "DECIMAL(10, 2)",
    "pic": "VARBINARY(50)",
}
TOO_LARGE = [value for misfit in MISFITS for value in misfit.values()]


@pytest.mark.parametrize("seed", thinned(range(200), 12))
def test_each_row_is_that_after_the_last_record_that_was_not_rejected(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    settings = Settings.drawn(chance, has_key=True)
    topic = RawTopic(batch_size=chance.choice([1, 3, 1000]))
    database = CapturedDatabase(
        settings,
        chance,
        topic,
        misfits=chance.choice([0.1, 0.4]),
        truncates=False,
        moves_at_once=chance.random() < 0.5,
    )
    table = table_of(chance)
    commits = chance.choice([1, 4, 1000])

    for _ in range(4):
        for _ in range(chance.randint(0, 25)):
            database.statement()
        topic.ingest(
            table,
            rows_per_commit=commits,
            format=settings.format,
            on_reject="quarantine",
            before_image="auto" if not settings.is_full or settings.connector == "mysql" else "whole",
        )
        rejected = set(table.inspect.rejected()["offset"].to_pylist())

        assert rejected == expected_rejections(database.written), settings
        assert rows_of(table) == expected_rows(database.written, rejected), settings


def table_of(chance: random.Random) -> DynamicTable:
    columns = [(name, parse_type(spelling)) for name, spelling in COLUMNS.items()]
    options = {
        "log.system": chance.choice(["none", "kafka"]),
        "bucket": chance.choice(["1", "2"]),
        **({"deletion-vectors.enabled": "true"} if chance.random() < 0.3 else {}),
    }
    catalog = MemoryCatalog(environment=fake_environment())
    return catalog.create_table("shop.orders", columns, primary_key=["id"], options=options)


def expected_rejections(written: Sequence[Written]) -> set[int]:
    """Return the offsets of the records that can't be applied."""
    rejected: set[int] = set()
    changed: defaultdict[int, set[str]] = defaultdict(set)
    for each in written:
        if each.row is None:
            continue
        if does_not_fit(each.row) or each.left_out & changed[each.key]:
            rejected.add(each.offset)
            # Of a record that does not decode, nobody knows what it leaves out.
            left_out = NONE if each.row["price"] in TOO_LARGE else each.left_out
            changed[each.key] |= COLUMNS.keys() - left_out
    return rejected


def does_not_fit(row: Row) -> bool:
    return any(value in TOO_LARGE for value in row.values())


def expected_rows(written: Sequence[Written], rejected: set[int]) -> list[tuple[Any, ...]]:
    rows: dict[int, Row | None] = {each.key: each.row for each in written if each.offset not in rejected}
    return sorted((tuple(row[name] for name in COLUMNS) for row in rows.values() if row is not None), key=repr)


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    rows: pa.Table = table.to_arrow()
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)
