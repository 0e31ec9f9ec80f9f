"""The benchmark of materialized tables fails if a refresh leaves out a change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from benchmarks.incremental_work import large_table, nexmark_refreshes, tpch_refreshes
from benchmarks.incremental_work.answer_check import WrongRowsError
from benchmarks.incremental_work.large_table import LargeTable, LargeTableWork
from benchmarks.incremental_work.nexmark_refreshes import NexmarkRefreshes, NexmarkWork
from benchmarks.incremental_work.tpch_refreshes import TpchRefreshes, TpchWork
from storage_lib import open_catalog
from storage_lib.materialized.service.fresh_tables import FreshTables
from storage_lib.spark import refresh
from tests.benchmarks.tiny_tpch import write_tiny_tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib import DynamicTable
    from storage_lib.spark import RefreshResult


def refresh_once(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """Make later refreshes of the benchmark report success and do nothing."""
    done: dict[str, RefreshResult] = {}

    def only_first(spark: SparkSession, table: DynamicTable) -> RefreshResult:
        if table.name not in done:
            done[table.name] = refresh(spark, table)
        return done[table.name]

    monkeypatch.setattr(module, "refresh", only_first)


def test_a_query_of_tpch_that_misses_a_change(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_tpch(tmp_path / "data")
    refresh_once(monkeypatch, tpch_refreshes)
    work = TpchWork(
        scale=0.0003, names=["Q01"], pairs=1, warm_ups=0, data=tmp_path / "data", directory=tmp_path / "work"
    )
    records = TpchRefreshes(spark, open_catalog(str(tmp_path / "warehouse")), work).run()

    assert next(records)["function"] == "load"
    with pytest.raises(WrongRowsError, match="Q01 after RF1 of pair 0"):
        next(records)


def test_sums_of_a_large_table_that_miss_a_change(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh_once(monkeypatch, large_table)
    work = LargeTableWork(rows=2000, changed=100, refreshes=1)
    records = LargeTable(spark, open_catalog(str(tmp_path / "warehouse")), work).run()

    assert next(records)["refresh"] == 0
    with pytest.raises(WrongRowsError, match="refresh 1"):
        next(records)


def test_a_query_of_nexmark_that_claims_newer_snapshots_than_it_holds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = str(tmp_path / "warehouse")
    refreshes: list[RefreshResult] = []

    def only_first(spark: SparkSession, table: DynamicTable) -> RefreshResult:
        if not refreshes:
            refreshes.append(refresh(spark, table))
        catalog = open_catalog(warehouse)
        newest = {name: catalog.load_table(name).inspect.latest_snapshot_id() or 0 for name in refreshes[0].positions}
        return replace(refreshes[0], positions=newest)

    monkeypatch.setattr(nexmark_refreshes, "refresh", only_first)
    monkeypatch.setattr(FreshTables, "run_once", lambda _: 0)
    work = NexmarkWork(names=["q00"], rate=200, seconds=6)

    with pytest.raises(WrongRowsError, match="q00 at 200 events/s"):
        next(NexmarkRefreshes(spark, open_catalog(warehouse), work).run())
