"""Dates, times and timestamps that no other reader can represent: refused when written, shown as numbers when read."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from storage_lib import DynamicTable, InvalidInputError, open_catalog
from storage_lib.cli.app import app
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.options.table_options import StartupMode
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.spark.data_source.table_source import DynamicTableSource
from storage_lib.spark.types.spark_schema import struct_of
from storage_lib.table.input import input_rows
from storage_lib.table.input.moment_range import find_out_of_range
from storage_lib.table.sources.ingest import SourceReader
from tests.support.fake_environment import FakeClock

DAY_MIN, DAY_MAX = -719_162, 2_932_896
SECONDS = 86_400
TYPES: dict[str, tuple[pa.DataType, int, int]] = {
    "DATE": (pa.date32(), DAY_MIN, DAY_MAX),
    "TIME(3)": (pa.time32("ms"), 0, SECONDS * 10**3 - 1),
    "TIMESTAMP(3)": (pa.timestamp("ms"), DAY_MIN * SECONDS * 10**3, (DAY_MAX + 1) * SECONDS * 10**3 - 1),
    "TIMESTAMP(6)": (pa.timestamp("us"), DAY_MIN * SECONDS * 10**6, (DAY_MAX + 1) * SECONDS * 10**6 - 1),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": (
        pa.timestamp("ms", "UTC"),
        DAY_MIN * SECONDS * 10**3,
        (DAY_MAX + 1) * SECONDS * 10**3 - 1,
    ),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": (
        pa.timestamp("us", "UTC"),
        DAY_MIN * SECONDS * 10**6,
        (DAY_MAX + 1) * SECONDS * 10**6 - 1,
    ),
}


def table_of(warehouse: Path, type_: str) -> DynamicTable:
    return open_catalog(str(warehouse)).create_table(
        "shop.moments", {"id": "BIGINT NOT NULL", "at": type_}, primary_key=["id"],
        options={"log.system": "none", "bucket": "1"},
    )  # fmt: skip


def moments(type_: pa.DataType, *values: int | None, kind: str = "+I") -> pa.Table:
    width = pa.int32() if type_.bit_width == 32 else pa.int64()
    return pa.table(
        {
            "id": pa.array(range(len(values)), pa.int64()),
            "at": pa.array(values, width).view(type_),
            "_row_kind": pa.array([kind] * len(values), pa.string()),
        }
    )


@pytest.mark.parametrize("spelled", TYPES)
def test_values_out_of_range_are_refused_and_nothing_is_committed(spelled: str, tmp_path: Path) -> None:
    type_, low, high = TYPES[spelled]
    table = table_of(tmp_path, spelled)
    greatest = 2 ** (type_.bit_width - 1) - 1
    for value in (low - 1, high + 1, greatest, -greatest - 1):
        with pytest.raises(InvalidInputError, match=rf"'at' is TIME.*row 2 .* {value} .*between {low} and {high}|"
                           rf"'at' is DATE.*row 2 .* {value} .*between {low} and {high}"):  # fmt: skip
            table.append(moments(type_, low, None, value, high))
        assert table.inspect.snapshots().num_rows == 0
    table.append(moments(type_, low, None, high))
    assert table.to_arrow()["at"].to_pylist().count(None) == 1


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_hold_no_value_out_of_range(zone: str | None) -> None:
    extremes = pa.array([2**63 - 1, None, -(2**63)], pa.int64()).view(pa.timestamp("ns", zone))
    assert find_out_of_range(extremes, "at") is None


@pytest.mark.parametrize("spelled", [spelled for spelled in TYPES if not spelled.startswith("TIME(")])
def test_values_out_of_range_of_other_writers_are_shown_as_numbers_and_can_be_deleted(
    spelled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_, low, high = TYPES[spelled]
    table = table_of(tmp_path, spelled)
    stored = moments(type_, high + 1, low, low - 1)
    with monkeypatch.context() as patched:  # written as by an engine without the check
        patched.setattr(input_rows, "find_out_of_range", lambda *_: None)
        table.append(stored)

    def run(*arguments: str) -> str:
        ran = CliRunner().invoke(app, ["-w", str(tmp_path), *arguments])
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    assert str(high + 1) in run("read", "shop.moments")
    run("files", "shop.moments")
    lines = [json.loads(line) for line in run("--json", "read", "shop.moments").splitlines()]
    assert [line["at"] for line in lines if line["id"] != 1] == [high + 1, low - 1]
    for kind in ("csv", "arrow", "parquet"):
        run("read", "shop.moments", "-f", kind, "--output", str(tmp_path / f"out.{kind}"))

    assert table.lookup([{"id": 0}]).num_rows == 1
    table.append(moments(type_, high + 1, None, low - 1, kind="-D"))
    assert table.to_arrow().num_rows == 0


def test_the_tasks_of_spark_refuse_them_too(tmp_path: Path) -> None:
    table = table_of(tmp_path, "DATE")
    source = DynamicTableSource({"path": table.location})
    writer = source.writer(struct_of(table.schema, ["id", "at"]), overwrite=False)
    batch = moments(pa.date32(), 0, DAY_MAX + 1).select(["id", "at"]).to_batches()[0]
    with pytest.raises(InvalidInputError, match=f"'at' is DATE.*row 1 has the value {DAY_MAX + 1}"):
        writer.write(iter([batch]))
    assert table.inspect.snapshots().num_rows == 0


def test_a_record_of_a_topic_is_refused_after_those_before_it_are_ingested(tmp_path: Path) -> None:
    table = table_of(tmp_path, "DATE")
    columns = pa.schema([("id", pa.int64()), ("at", pa.date32())])
    log = MemoryLogStore(
        new_table_schema(columns, options={"bucket": "1"}, time_millis=0), f"cdc-{uuid4()}", "theirs", FakeClock()
    )
    log.create()
    appender = log.open_appender()
    batch = moments(pa.date32(), 0, DAY_MAX + 1).select(columns.names).to_batches()[0]
    appender.write(0, batch, pa.array([0, 0], pa.int8()))
    appender.finish()
    foreign = ExternalTopic(name="cdc", columns=columns, client_options={}, startup=StartupMode.FULL)
    with pytest.raises(InvalidInputError, match=f"offset 1.*{DAY_MAX + 1} is out of the range of DATE"):
        SourceReader(table, foreign, log, "cdc", 10, skip_expired=False).read_up_to(
            log.latest_offsets(), change_tracking=None
        )
    offsets = table.inspect.source_offsets("cdc")
    assert offsets is not None
    assert dict(offsets.next_offsets) == {0: 1}
    assert table.count() == 1


def test_nested_values_are_found_with_their_path_and_row() -> None:
    days = pa.array([0, 1, 2**31 - 1, 5, None], pa.int32()).view(pa.date32())
    assert find_out_of_range(days, "d").row == 2  # type: ignore[union-attr]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 4, 5], pa.int32()), days)
    for array, row in ((lists, 2), (lists.slice(1), 1), (lists.slice(2), 0)):
        found = find_out_of_range(array, "tags")
        assert found is not None
        assert (found.place, found.row, found.value) == ("tags.element", row, 2**31 - 1)
    assert find_out_of_range(lists.slice(3), "tags") is None
    rows = pa.StructArray.from_arrays([lists], ["when"], mask=pa.array([False, False, True, False]))
    assert find_out_of_range(rows, "r") is None
    rows = pa.StructArray.from_arrays([pa.array([1, 2, 3, 4]), lists], ["n", "when"])
    found = find_out_of_range(rows.slice(1), "r")
    assert found is not None
    assert (found.place, found.row) == ("r.when.element", 1)
    keys = pa.array(["a", "b", "c", "d", "e"])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 1, 4, 5], pa.int32()), keys, days)
    found = find_out_of_range(maps.slice(1), "m")
    assert found is not None
    assert (found.place, found.row) == ("m.value", 1)
