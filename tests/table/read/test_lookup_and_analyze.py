"""Rows are found by key without a scan, and a table's statistics are stored for planners."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog
from storage_lib.table.inspect.distinct_count import DistinctCount
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import content, orders, reopened, rows


@pytest.fixture
def lived() -> DynamicTable:
    """Create 200 keys in each of two days, in four buckets; some updated, one deleted."""
    table = orders(None, **{"log.system": "none", "bucket": "4", "write-only": "true"})
    table.append(rows(*(f"+I {day} {n} {n}" for day in "ab" for n in range(200))))
    table.compact()
    table.append(rows("+U a 7 70", "-D b 8 8"))
    return table


def texts(found: pa.Table) -> list[str]:
    return [" ".join(map(str, row.values())) for row in found.to_pylist()]


def test_rows_come_in_the_order_of_the_keys_and_what_is_not_there_does_not(lived: DynamicTable) -> None:
    keys = [
        {"dt": "b", "id": 3},
        {"dt": "a", "id": 7},
        {"dt": "b", "id": 8},
        {"dt": "c", "id": 1},
        {"dt": "a", "id": 999},
    ]
    assert texts(lived.lookup(keys)) == ["b 3 3", "a 7 70"]
    assert texts(lived.lookup([*keys, keys[1]], columns=["price"])) == ["3", "70"]
    assert texts(lived.lookup(pa.table({"id": pa.array([7], pa.int32()), "dt": ["a"]}), snapshot_id=1)) == ["a 7 7"]
    assert lived.lookup([]).num_rows == 0
    assert orders(MemoryCatalog(environment=fake_environment())).lookup(keys).num_rows == 0


def test_every_key_of_a_table_is_found_however_many_are_asked_for(lived: DynamicTable) -> None:
    everything = lived.to_arrow()
    found = lived.lookup(everything.select(["dt", "id"]))
    assert found.equals(everything)
    many = pa.table({"dt": ["a"] * 5000, "id": pa.array(range(5000), pa.int64())})
    assert lived.lookup(many)["id"].to_pylist() == list(range(200))


def test_a_second_lookup_opens_only_files_that_hold_the_key() -> None:
    table = orders(None, **{"log.system": "none", "bucket": "1", "write-only": "true"})
    for round_ in range(5):
        table.append(rows(*(f"+I a {n} {n}" for n in range(round_, 200, 5))))
    table.append(rows("-D a 8 8"))
    counted = FaultyFileIO(table.environment.file_io)
    reader = reopened_in(counted, table, names="reader")

    def opened(*ids: int) -> tuple[list[str], int]:
        counted.calls.clear()
        found = texts(reader.lookup([{"dt": "a", "id": each} for each in ids]))
        return found, sum(operation == "open_input" and "/data-" in path for operation, path in counted.calls)

    assert opened(7, 9) == (["a 7 7", "a 9 9"], 5)
    assert opened(7) == (["a 7 7"], 1)
    assert opened(7, 8, 12) == (["a 7 7", "a 12 12"], 3)
    assert opened(1000) == ([], 0)


def test_a_lookup_opens_few_files() -> None:
    table = orders(None, **{"log.system": "none", "bucket": "4", "write-only": "true"})
    for start in range(0, 1000, 100):
        table.append(rows(*(f"+I {day} {n} {n}" for day in "ab" for n in range(start, start + 100))))
    counted = FaultyFileIO(table.environment.file_io)
    reader = reopened_in(counted, table, names="reader")
    assert texts(reader.lookup([{"dt": "a", "id": 355}])) == ["a 355 355"]
    assert len({path for operation, path in counted.calls if operation == "open_input"}) == 1


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ([{"dt": "a"}], "missing id"),
        ([{"dt": "a", "id": 1, "price": 2}], "not price"),
        ([{"dt": "a", "id": None}], "null"),
        ([{"dt": "a", "id": "x"}], "not keys of"),
        ([{"dt": "a", "id": 1 << 63}], "not keys of"),
        (["a"], "not a mapping of columns"),
        ({"dt": "a", "id": 1}, "neither a list"),
        (pl.DataFrame({"dt": ["a"], "id": [1]}), "neither a list"),
    ],
)
def test_what_is_no_key_is_refused(lived: DynamicTable, keys: Any, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        lived.lookup(keys)


def test_an_analysis_tells_rows_bounds_nulls_and_distinct_values(lived: DynamicTable) -> None:
    lived.append(rows("+U a 9 -"))
    snapshot = lived.maintenance.analyze()
    assert snapshot is not None
    assert (snapshot.commit_kind, snapshot.delta_record_count) == ("ANALYZE", 0)
    (statistics,) = lived.inspect.system_table("statistics").to_pylist()
    assert (statistics["snapshot_id"], statistics["mergedRecordCount"]) == (4 - 0, 399)
    of_columns = json.loads(statistics["colstat"])
    assert of_columns["id"] == {
        "colId": 1, "distinctCount": 200, "min": "0", "max": "199", "nullCount": 0, "avgLen": 8, "maxLen": 8,
    }  # fmt: skip
    assert of_columns["dt"] == {"colId": 0, "distinctCount": 2, "nullCount": 0, "avgLen": 1, "maxLen": 1}
    assert of_columns["price"]["nullCount"] == 1


def test_statistics_are_carried_forward_and_expire_with_the_last_snapshot_that_names_them(lived: DynamicTable) -> None:
    lived.maintenance.analyze(["id"])
    first = lived.context.file_store.snapshots.latest()
    lived.append(rows("+I c 1 1"))
    newest = lived.context.file_store.snapshots.latest()
    assert first is not None
    assert newest is not None
    assert newest.statistics == first.statistics
    directory = f"{lived.location}/statistics"
    lived.maintenance.analyze()
    assert len(lived.environment.file_io.list_directory(directory)) == 2
    lived.maintenance.expire_snapshots(retain_last=1)
    assert len(lived.environment.file_io.list_directory(directory)) == 1
    assert reopened(lived).inspect.system_table("statistics").num_rows == 1
    assert content(lived) == content(reopened(lived))


def test_columns_of_many_types_are_analyzed() -> None:
    catalog = MemoryCatalog({"log.system": "none"}, environment=fake_environment())
    columns = pa.schema(
        [
            ("id", pa.int64()), ("b", pa.bool_()), ("f", pa.float64()), ("d", pa.date32()), ("s", pa.string()),
            ("ts", pa.timestamp("us")), ("dec", pa.decimal128(10, 2)), ("bin", pa.binary()),
            ("l", pa.list_(pa.int32())),
        ]
    )  # fmt: skip
    table = catalog.create_table("db.t", columns, primary_key=["id"])
    table.append(pa.table({name: [1, 2] if name == "id" else [None, None] for name in columns.names}, schema=columns))
    table.maintenance.analyze()
    values = [
        3,
        True,
        float("nan"),
        dt.date(1970, 1, 11),
        "é",
        dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=dt.UTC).replace(tzinfo=None),
        Decimal("1.50"),
        b"xyz",
        [1],
    ]
    table.append(pa.table({name: [value] for name, value in zip(columns.names, values, strict=True)}, schema=columns))
    table.maintenance.analyze()
    found = json.loads(table.inspect.system_table("statistics")["colstat"][0].as_py())
    assert found["d"]["min"] == "10"
    assert found["ts"]["max"] == "1970-01-01T00:00:01.500000"
    assert found["dec"]["min"] == "1.50"
    assert found["s"]["maxLen"] == 2
    assert "min" not in found["f"]
    assert found["l"]["nullCount"] == 2


@pytest.mark.parametrize("distinct", [10, 4000, 300_000])
def test_distinct_values_are_counted_within_a_few_percent(distinct: int) -> None:
    values = np.random.default_rng(3).integers(0, distinct, 3 * distinct)
    count = DistinctCount()
    for part in np.array_split(values, 7):
        count.add(pa.array(part))
    exact = len(np.unique(values))
    assert abs(count.estimate - exact) <= (0 if exact < 4096 else 0.05 * exact)


def test_zeros_of_both_signs_and_nan_are_keys_of_their_own() -> None:
    catalog = MemoryCatalog({"log.system": "none"}, environment=fake_environment())
    table = catalog.create_table("shop.floats", {"key": "DOUBLE", "text": "STRING"}, primary_key=["key"])
    table.append(pa.table({"key": [0.0, -0.0, float("nan"), 1.0], "text": ["zero", "minus zero", "nan", "one"]}))

    assert table.lookup([{"key": 0.0}])["text"].to_pylist() == ["zero"]
    assert table.lookup([{"key": -0.0}])["text"].to_pylist() == ["minus zero"]
    assert table.lookup([{"key": float("nan")}, {"key": 1.0}])["text"].to_pylist() == ["nan", "one"]
