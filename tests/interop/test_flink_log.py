"""Flink's own debezium-json decoder reads the records of our logs, in the modes that docs/kafka.md names."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog, col
from tests.support.deep_tests import thinned
from tests.support.flink import FLINKS, Flink
from tests.support.line_servant import RefusedError

pytestmark = [pytest.mark.flink, pytest.mark.integration]

ALL = {"log.changelog-mode": "all"}
GIVEN = {**ALL, "write.produce-update-before": "input"}
COLUMNS = {"id": "BIGINT", "name": "STRING"}
# Our type, the type that Flink's decoder needs, and a value with the text that Flink prints for it.
EVERY_TYPE: dict[str, tuple[str, str, Any, str]] = {
    "flag": ("BOOLEAN", "BOOLEAN", True, "true"),
    "small": ("SMALLINT", "SMALLINT", -3, "-3"),
    "number": ("INT", "INT", 7, "7"),
    "large": ("BIGINT", "BIGINT", 1 << 60, str(1 << 60)),
    "single": ("FLOAT", "FLOAT", 0.5, "0.5"),
    "double": ("DOUBLE", "DOUBLE", float("nan"), "NaN"),
    "text": ("STRING", "STRING", 'a "b"\n\\', 'a "b"\n\\'),
    "raw": ("BYTES", "BYTES", b"\x01\xff", "[1, -1]"),
    "price": ("DECIMAL(9, 2)", "BYTES", Decimal("9.50"), "[3, -74]"),
    "day": ("DATE", "INT", dt.date(1970, 1, 3), "2"),
    "hour": ("TIME(3)", "INT", dt.time(0, 0, 1), "1000"),
    "at": ("TIMESTAMP(6)", "BIGINT", dt.datetime(1970, 1, 1, 0, 0, 1), "1000000"),  # noqa: DTZ001  a local time
    "instant": (
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        "STRING",
        dt.datetime(2024, 5, 14, 10, tzinfo=dt.UTC),
        "2024-05-14T10:00:00.000Z",
    ),
    "tags": ("ARRAY<STRING>", "ARRAY<STRING>", ["x", None], "[x, null]"),
    "place": ("ROW<x INT, y STRING>", "ROW<x INT, y STRING>", {"x": 1, "y": "z"}, "+I[1, z]"),
    "nothing": ("STRING", "STRING", None, "null"),
}


@pytest.fixture(params=thinned(["2.0", "1.20"]))
def flink(request: pytest.FixtureRequest) -> Flink:
    if not list((FLINKS[request.param] / "lib").glob("flink-json-*.jar")):
        pytest.skip("Flink's decoder of JSON is missing: run `make servers`")
    found: Flink = request.getfixturevalue(f"flink_{request.param.replace('.', '_')}")
    return found


def changes(flink: Flink, table: DynamicTable, folder: Path, columns: dict[str, str]) -> list[str]:
    """Return the changes that Flink decodes from the records of all buckets."""
    records = folder / "records"
    records.mkdir()
    for number, bucket in enumerate(table.log._log().buckets):  # type: ignore[union-attr]
        values = [value for stretch in bucket.stretches for value in stretch.columns.values.to_pylist()]
        (records / f"{number}.json").write_bytes(b"".join(value + b"\n" for value in values))
    declared = ", ".join(f"`{name}` {type_}" for name, type_ in columns.items())
    return flink.execute(
        folder,
        f"CREATE TEMPORARY TABLE log ({declared}) WITH ('connector' = 'filesystem', 'format' = 'debezium-json', "
        f"'path' = 'file://{records}')",
        "SELECT * FROM log",
        streaming=True,
    )


def content(printed: list[str]) -> list[str]:
    """Apply changes; return the rows that are left, in order."""
    rows: list[str] = []
    # Buckets are read in parallel, but each in order: a row may be retracted before another bucket has added it.
    for change in sorted(printed, key=lambda change: change[0] == "-"):
        if change[0] == "+":
            rows.append(change[2:])
        else:
            rows.remove(change[2:])
    return sorted(rows)


@pytest.mark.parametrize("seed", thinned(range(12), 2))
@pytest.mark.parametrize(
    ("key", "options"), [((), {}), (("id",), ALL), (("id",), GIVEN)], ids=["keyless", "all", "given"]
)
def test_flink_reads_every_change_of_a_log_whose_updates_have_both_rows(
    key: tuple[str, ...], options: dict[str, str], seed: int, flink: Flink, tmp_path: Path
) -> None:
    chance = Random(seed)  # noqa: S311  reproducible
    options = {**options, "bucket": str(chance.choice((1, 3)))}
    table = MemoryCatalog({}).create_table("shop.visits", COLUMNS, primary_key=[*key], options=options)
    for turn in range(4):
        rows = [{"id": 10 * turn + number, "name": chance.choice("abc")} for number in range(chance.randrange(1, 6))]
        table.insert(rows)
        table.update(col("id") >= 10 * chance.randrange(turn + 1), {"name": chance.choice("abcz")})
        table.delete(col("id") == 10 * turn)

    found = changes(flink, table, tmp_path, COLUMNS)

    assert any(change.startswith("-U") for change in found)
    assert content(found) == sorted(f"[{row['id']}, {row['name']}]" for row in table.to_arrow().to_pylist())


def test_flink_refuses_an_update_of_the_default_mode(flink: Flink, tmp_path: Path) -> None:
    table = MemoryCatalog({}).create_table("shop.visits", COLUMNS, primary_key=["id"])
    table.append(pa.table({"id": [1], "name": ["a"]}))
    table.update(col("id") == 1, {"name": "b"})

    with pytest.raises(RefusedError, match='"before" field of UPDATE message is null'):
        changes(flink, table, tmp_path, COLUMNS)


def test_flink_reads_values_of_every_type_under_the_types_of_debezium(flink: Flink, tmp_path: Path) -> None:
    columns = {name: ours for name, (ours, *_) in EVERY_TYPE.items()}
    table = MemoryCatalog({}).create_table("shop.visits", columns)
    table.append([{name: value for name, (_, _, value, _) in EVERY_TYPE.items()}])

    found = changes(flink, table, tmp_path, {name: type_ for name, (_, type_, *_) in EVERY_TYPE.items()})

    assert found == [f"+I[{', '.join(text for *_, text in EVERY_TYPE.values())}]"]
