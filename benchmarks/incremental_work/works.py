"""The works of the benchmark, each for a process of its own: sessions, memory and compiled code are not shared."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.incremental_work.large_table import LargeTable, LargeTableWork
from benchmarks.incremental_work.nexmark_flink import NexmarkFlink
from benchmarks.incremental_work.nexmark_refreshes import NexmarkRefreshes, NexmarkWork
from benchmarks.incremental_work.sessions import SessionSettings, started_session
from benchmarks.incremental_work.tpch_refreshes import TpchRefreshes, TpchWork
from storage_lib import open_catalog

Records = list[dict[str, Any]]


def in_a_process(work: Callable[..., Records], *arguments: object) -> Records:
    """Run a work in a new process, and return its records. Raises what the work raises."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def measured_tpch(settings: SessionSettings, work: TpchWork) -> Records:
    """Maintain TPC-H's queries."""
    with started_session(settings) as spark:
        catalog = open_catalog(str(settings.directory / "warehouse"))
        return _said(TpchRefreshes(spark, catalog, work).run(), _tpch_line)


def measured_nexmark(settings: SessionSettings, works: list[NexmarkWork]) -> Records:
    """Keep Nexmark's queries fresh, at one rate after the other."""
    with started_session(settings) as spark:
        catalog = open_catalog(str(settings.directory / "warehouse"))
        return _said((each for work in works for each in NexmarkRefreshes(spark, catalog, work).run()), _nexmark_line)


def measured_flink(directory: Path, works: list[NexmarkWork], cores: int, checkpoint_seconds: float) -> Records:
    """Keep the answers of ``measured_nexmark`` up to date with Flink."""
    catalog = open_catalog(str(directory / "warehouse"))
    runs = (NexmarkFlink(catalog, each, cores=cores, checkpoint_seconds=checkpoint_seconds) for each in works)
    return _said((each for run in runs for each in run.run()), _flink_line)


def measured_large_table(settings: SessionSettings, work: LargeTableWork) -> Records:
    """Refresh sums by group of one large table."""
    with started_session(settings) as spark:
        catalog = open_catalog(str(settings.directory / "warehouse"))
        return _said(LargeTable(spark, catalog, work).run(), _large_table_line)


def _tpch_line(each: dict[str, Any]) -> str:
    why = f", {each['reason']}" if each["mode"] == "full" else ""
    return (
        f"{each['query']} {each['function']} {each['pair']}: {each['mode']}{why}, {each['ours_seconds']:.2f} s, "
        f"plain {each['plain_seconds']:.2f} s, {each['rows']:,} rows, {each['rows_read']:,} read, "
        f"{each['rows_written']:,} written"
    )


def _nexmark_line(each: dict[str, Any]) -> str:
    return (
        f"{each['query']} at {each['rate']:,} events/s: {each['mode']} {each['reason']}, "
        f"{each['refreshes']} refreshes of {each['refresh_seconds']:.2f} s, "
        f"age p50 {each['since_commit_p50']:.2f} s, p99 {each['since_commit_p99']:.2f} s, {each['rows']:,} rows"
    )


def _flink_line(each: dict[str, Any]) -> str:
    start = f"{each['query']} at {each['rate']:,} events/s by Flink: "
    if "refused" in each:
        return f"{start}refused, {each['refused']}"
    if "late" in each:
        return f"{start}{each['late']}"
    return (
        f"{start}{each['refreshes']} checkpoints, age p50 {each['since_commit_p50']:.2f} s, "
        f"p99 {each['since_commit_p99']:.2f} s, {each['rows']:,} rows"
    )


def _large_table_line(each: dict[str, Any]) -> str:
    return (
        f"{each['rows']:,} rows, refresh {each['refresh']}: {each['mode']}, {each['ours_seconds']:.2f} s, "
        f"query {each['query_seconds']:.2f} s, JVM {each['jvm_bytes'] >> 20:,} MiB, "
        f"driver {each['driver_bytes'] >> 20:,} MiB, workers {each['workers_bytes'] >> 20:,} MiB"
    )


def _said(records: Iterable[dict[str, Any]], line: Callable[[dict[str, Any]], str]) -> Records:
    """Return the records, and print each to standard error as it comes."""
    found = []
    for each in records:
        print(line(each), file=sys.stderr, flush=True)
        found.append(each)
    return found
