"""Splits of key ranges: their rows add up to the table's, whatever the history, engine, key type and target size."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.file_store.split import Split
from storage_lib.format import formats
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.predicate import Predicate
from tests.support.deep_tests import crossed
from tests.support.key_pools import KEY_POOLS, KEYS, table_of
from tests.support.random_life import ADD, DELETE, ENGINES, Engine
from tests.support.shared_table import Change, Row, arrow_of, sorted_rows

TARGETS = (1, 500, 3_000, 9_000)
"""Bytes: from a split for each row group to hardly any."""
LOOKED_UP = {"write-only": "true", "changelog-producer": "lookup"}
VECTORS = {"write-only": "true", "deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write row groups of four rows."""
    monkeypatch.setattr(formats, "ParquetFormat", functools.partial(ParquetFormat, row_group_rows_max=4))


@dataclass
class Life:
    """One table in a warehouse, its random changes, and the rows that a model expects."""

    home: Path
    seed: int
    engine: Engine
    options: Mapping[str, str]
    changes: list[Change] = field(default_factory=list)
    cut_count: int = 0

    def __post_init__(self) -> None:
        self.drawn = np.random.default_rng(self.seed)
        self.table = WarehouseCatalog(str(self.home)).create_table(
            "d.t",
            {"k": "INT", **self.engine.columns},
            primary_key=["k"],
            options={"bucket": "1", "num-sorted-run.compaction-trigger": "4", **self.engine.options, **self.options},
        )

    def run(self, commits: int) -> None:
        """Append random changes, compact now and then, and compare after each step."""
        for _ in range(commits):
            self._append()
            self._compare()
            if self.drawn.random() < 0.4:
                self.table.compact(full=bool(self.drawn.random() < 0.3))
                self._compare()

    def _append(self) -> None:
        low, width = int(self.drawn.integers(0, KEYS // 2)), int(self.drawn.integers(1, KEYS))
        changes: list[Change] = []
        for _ in range(int(self.drawn.integers(1, 40))):
            key = low + int(self.drawn.integers(0, width))
            row = (key, *(self._value(name, spelled) for name, spelled in self.engine.columns.items()))
            kind = DELETE if self.engine.deletes and self.drawn.random() < 0.2 else ADD
            changes.append((kind, row))
        self.table.append(arrow_of(self.table, changes))
        self.changes += changes

    def _value(self, name: str, spelled: str) -> Any:
        is_sequence = f"fields.{name}.sequence-group" in self.engine.options
        if not is_sequence and self.drawn.random() < 0.2:
            return None
        if spelled.startswith("ARRAY"):
            return self.drawn.integers(0, 100, int(self.drawn.integers(0, 3))).tolist()
        number = int(self.drawn.integers(0, 100))
        return f"v{number}" if spelled == "STRING" else number

    def _expected(self) -> list[Row]:
        by_key: dict[int, list[Change]] = {}
        for change in self.changes:
            by_key.setdefault(change[1][0], []).append(change)
        rows = (self.engine.row(versions) for versions in by_key.values())
        return [row for row in rows if row is not None]

    def _compare(self) -> None:
        expected = self._expected()
        target = int(self.drawn.choice(TARGETS))
        low = int(self.drawn.integers(0, KEYS))
        conditions: list[tuple[Predicate | None, Any]] = [
            (None, lambda _: True),
            ((col("k") >= low) & (col("k") < low + 15), lambda row: low <= row[0] < low + 15),
            (col("k").isin([low, low + 1]), lambda row: row[0] in (low, low + 1)),
            (col("b") < 50, lambda row: row[3] is not None and row[3] < 50),
        ]
        for condition, passes in conditions:
            rows = list(rows_by_range(self.table, target, condition))
            wanted = [row for row in expected if passes(row)]
            assert sorted_rows(rows) == sorted_rows(wanted), (self.seed, target, condition)
        splits = cut_of(self.table, target)
        assert splits == cut_of(self.table, target), "the same plan is divided in the same way"
        self.cut_count += sum(split.key_range is not None for split in splits)


def cut_of(table: DynamicTable, target: int, condition: Predicate | None = None) -> tuple[Split, ...]:
    """Return the splits of the newest snapshot, divided by keys."""
    read = table.new_read(filter=condition)
    return read.splits(read.plan(), target)


def rows_by_range(table: DynamicTable, target: int, condition: Predicate | None = None) -> Iterator[Row]:
    """Yield the rows of all splits, each read by a table of its own, as tasks do."""
    for split in cut_of(table, target, condition):
        for batch in table.new_read(filter=condition).read_split(split):
            yield from (tuple(row.values()) for row in batch.to_pylist())


@pytest.mark.parametrize(("name", "kind"), crossed(ENGINES, ("vectors", "plain")))
def test_the_ranges_of_a_bucket_add_up_to_its_rows(name: str, kind: str, tmp_path: Path) -> None:
    options = VECTORS if kind == "vectors" else {}
    if options and not ENGINES[name].takes_vectors:
        options = LOOKED_UP
    lives = [Life(tmp_path / str(seed), seed, ENGINES[name], options) for seed in range(3)]

    for life in lives:
        life.run(commits=8)

    assert sum(life.cut_count for life in lives) > 50


@pytest.mark.parametrize("name", KEY_POOLS)
def test_keys_of_each_type_are_in_exactly_one_range(name: str, tmp_path: Path) -> None:
    types, pool, least = KEY_POOLS[name]
    names = [f"k{index}" for index in range(len(types))]
    table = WarehouseCatalog(str(tmp_path)).create_table(
        "d.t",
        {**dict(zip(names, types, strict=True)), "v": "INT"},
        primary_key=names,
        options={"bucket": "1", "write-only": "true"},
    )
    drawn = np.random.default_rng(len(name))
    expected: dict[str, Row] = {}
    for version in range(5):
        keys = [pool[index] for index in drawn.permutation(len(pool))[: len(pool) if version == 0 else 20]]
        rows = [(*key, version) for key in keys]
        appended = table_of(table, rows)
        table.append(appended)
        expected |= {repr(row[:-1]): row for row in (tuple(each.values()) for each in appended.to_pylist())}

    assert len(cut_of(table, TARGETS[0])) >= least
    assert least > 1 or len(cut_of(table, TARGETS[0])) == 1
    for target in TARGETS:
        rows = list(rows_by_range(table, target))
        found = {repr(row[:-1]): row[-1] for row in rows}
        assert len(rows) == len(found)
        assert found == {key: row[-1] for key, row in expected.items()}
