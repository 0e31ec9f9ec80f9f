"""Rows that a merge of the keys finds standing: another reader of the files, without the others, reads the table."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.errors import CorruptFileError
from storage_lib.file_store.merge_tree.standing.standing_rows import StandingRows
from storage_lib.format import formats
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN
from storage_lib.table.builders.read_builder import ReadBuilder
from storage_lib.table.read.left_out_rows import LeftOutRows, encoded, left_out_rows
from tests.support.deep_tests import thinned
from tests.support.key_pools import KEY_POOLS, table_of
from tests.support.shared_table import Row

TARGETS = (1, 500, 3_000, 1_000_000)
"""Bytes of a split: from one for each row group to one for each bucket."""
COMMITS = (4, 12)
DELETE = "-D"


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write row groups of four rows."""
    monkeypatch.setattr(formats, "ParquetFormat", functools.partial(ParquetFormat, row_group_rows_max=4))


@pytest.mark.parametrize("commits", thinned(COMMITS))
@pytest.mark.parametrize("name", KEY_POOLS)
def test_files_without_the_rows_left_out_have_the_rows_of_the_table(name: str, commits: int, tmp_path: Path) -> None:
    types, pool, _ = KEY_POOLS[name]
    names = [f"k{index}" for index in range(len(types))]
    table = WarehouseCatalog(str(tmp_path)).create_table(
        "d.t",
        {**dict(zip(names, types, strict=True)), "v": "INT"},
        primary_key=names,
        options={"bucket": "2", "num-sorted-run.compaction-trigger": "5"},
    )
    drawn = np.random.default_rng(len(name))
    expected: dict[str, Row] = {}
    left_out = 0
    for version in range(commits):
        chosen = [pool[index] for index in drawn.permutation(len(pool))[: int(drawn.integers(1, 40))]]
        rows = table_of(table, [(*key, version) for key in chosen])
        if drawn.random() < 0.25:
            table.append(rows.append_column(ROW_KIND_COLUMN, pa.array([DELETE] * rows.num_rows)))
            gone = dict(by_key(rows)).keys()
            expected = {key: row for key, row in expected.items() if key not in gone}
        else:
            table.append(rows)
            expected |= dict(by_key(rows))
        if drawn.random() < 0.3:
            table.compact(full=bool(drawn.random() < 0.3))
        for target in TARGETS:
            found = [pair for rows, count in read_by_pyarrow(table, target) for pair in by_key(rows)]
            assert len(found) == len(dict(found)), (version, target)
            assert {key: row[-1] for key, row in found} == {key: row[-1] for key, row in expected.items()}
        left_out += sum(count for _, count in read_by_pyarrow(table, TARGETS[0]))
    assert left_out > commits


def test_a_column_may_have_any_name_that_is_not_reserved(tmp_path: Path) -> None:
    columns = {"_PLACE": "BIGINT NOT NULL", "place": "INT", "_KEY": "INT"}
    table = WarehouseCatalog(str(tmp_path)).create_table("d.t", columns, primary_key=["_PLACE"])
    for version in range(2):
        table.append([{"_PLACE": 1, "place": version, "_KEY": 1}, {"_PLACE": 2 + version, "place": 0, "_KEY": 0}])

    found = [tuple(row.values()) for rows, _ in read_by_pyarrow(table, TARGETS[-1]) for row in rows.to_pylist()]

    assert sorted(found) == [(1, 1, 1), (2, 0, 0), (3, 0, 0)]


def test_all_rows_of_a_file_without_others_stand(tmp_path: Path) -> None:
    columns = {"id": "BIGINT NOT NULL", "v": "INT"}
    table = WarehouseCatalog(str(tmp_path)).create_table("d.t", columns, primary_key=["id"], options={"bucket": "1"})
    table.append([{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    read = table.new_read()
    [split] = read.splits(read.plan())

    [rows] = read.standing_rows(split)

    assert (rows.start, rows.stands.tolist()) == (0, [True, True])


def test_rows_that_no_task_has_read_are_an_error() -> None:
    standing = StandingRows(file_name="a", start=2, stands=np.array([True, False, True]))
    sent = pa.Table.from_batches([encoded([standing])])

    assert left_out_rows(pa.concat_tables([sent, sent_of("a", 0, [False, True])]), {"a": 5})["a"].bits.tolist() == [9]
    with pytest.raises(CorruptFileError, match="a: 2 of 5 rows were not read by the merge of keys"):
        left_out_rows(sent, {"a": 5})


def test_the_bits_of_a_file_are_padded_to_words() -> None:
    rows = LeftOutRows.at(np.array([0, 65]), 70)

    assert (rows.place_count, rows.padded()) == (128, b"\x01" + bytes(7) + b"\x02" + bytes(7))


def sent_of(name: str, start: int, stands: list[bool]) -> pa.Table:
    return pa.Table.from_batches([encoded([StandingRows(file_name=name, start=start, stands=np.array(stands))])])


def by_key(rows: pa.Table) -> Iterator[tuple[str, Row]]:
    """Yield each row with the text of its key: NaN is one key, and zeros of both signs are two."""
    for each in rows.to_pylist():
        row = tuple(each.values())
        yield repr(row[:-1]), row


def read_by_pyarrow(table: DynamicTable, target: int) -> Iterator[tuple[pa.Table, int]]:
    """Yield the table's rows in each file, and how many of the file's rows are left out."""
    read = table.new_read()
    divided = read.plan_divided()
    assert read.tells_standing_rows(divided.merged)
    left_out = left_out_of(read, table, target)
    schema = table.schema.arrow_schema
    for file in read.unmerged_files(divided.unmerged) + read.unmerged_files(divided.merged):
        stored = pq.read_table(file.path, columns=["_VALUE_KIND", *schema.names])
        bits = left_out.get(file.entry.file.file_name, LeftOutRows.at(np.array([], np.int64), stored.num_rows)).bits
        gone = np.unpackbits(bits, count=stored.num_rows, bitorder="little").astype(bool)
        kinds = stored["_VALUE_KIND"].to_numpy()
        yield stored.select(schema.names).cast(schema).filter(pa.array(~gone & (kinds % 2 == 0))), int(gone.sum())


def left_out_of(read: ReadBuilder, table: DynamicTable, target: int) -> dict[str, LeftOutRows]:
    plan = read.plan_divided().merged
    sent = [encoded(table.new_read().standing_rows(split)) for split in read.splits(plan, target)]
    counts: dict[str, Any] = {entry.file.file_name: entry.file.row_count for entry in plan.entries}
    return left_out_rows(pa.Table.from_batches(sent), counts) if sent else {}
