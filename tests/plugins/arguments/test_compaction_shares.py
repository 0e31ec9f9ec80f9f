"""Shares of a compaction: they are sent as JSON, and their buckets are resolved again."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from dynamic_table.arguments.compaction_shares import checked_share, shares_of
from storage_lib import open_catalog

PARTITIONS = {
    "a": (pa.float64(), [0.1, None, 1e300]),
    "b": (pa.timestamp("us"), [datetime(2024, 5, 14, 1, 2, 3, 456789), None, datetime(1969, 1, 1)]),  # noqa: DTZ001
    "c": (pa.decimal128(10, 3), [Decimal("1.500"), None, Decimal("-0.001")]),
    "d": (pa.bool_(), [True, None, False]),
    "e": (pa.date32(), [date(2024, 5, 14), None, date(1900, 1, 1)]),
    "f": (pa.string(), ["x/=y ", None, ""]),
    "g": (pa.float32(), [0.1, None, 3.4e38]),
}


def test_a_share_names_partitions_of_every_type_so_that_they_are_found_again(tmp_path: Path) -> None:
    schema = pa.schema([*((name, kind) for name, (kind, _) in PARTITIONS.items()), ("id", pa.int64())])
    table = open_catalog(str(tmp_path)).create_table(
        "shop.odd",
        schema,
        partition_by=list(PARTITIONS),
        options={"log.system": "none", "bucket": "1", "bucket-key": "id", "write-only": "true"},
    )
    rows = pa.table({**{name: values for name, (_, values) in PARTITIONS.items()}, "id": [1, 2, 3]}, schema=schema)
    for _ in range(2):
        table.append(rows)

    shares = [json.loads(json.dumps(share)) for _, share in shares_of(table, table.maintenance.plan_compaction(), 1)]
    done = [table.compact(buckets=checked_share(share)) for share in shares]

    assert [snapshot.id for snapshot in done if snapshot] == [3, 4, 5]
    assert table.maintenance.plan_compaction() == []
    assert table.to_arrow().num_rows == 6


def test_shares_are_of_about_the_same_size_and_no_smaller_than_a_bucket(tmp_path: Path) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    options = {"log.system": "none", "bucket": "8", "write-only": "true"}
    table = open_catalog(str(tmp_path)).create_table("shop.even", columns, primary_key=["id"], options=options)
    for _ in range(2):
        table.append(pa.table({"id": range(80_000)}, schema=columns))
    tasks = table.maintenance.plan_compaction()
    size = table.inspect.health().size_bytes

    by_count = {count: shares_of(table, tasks, size / count) for count in (1, 3, 1000)}

    assert {count: len(shares) for count, shares in by_count.items()} == {1: 1, 3: 3, 1000: 8}
    for shares in by_count.values():
        assert sum(each for each, _ in shares) == size
        buckets = [number for _, share in shares for place in share for number in place["buckets"]]
        assert sorted(buckets) == list(range(8))
    sizes = [each for each, _ in by_count[3]]
    assert max(sizes) < 1.6 * min(sizes)
