"""The ten figures of docs/performance.md: what each shows, in one or two sentences and a few bars.

Every number comes from ``benchmarks/results``, also those in the sentences.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.bar_picture import Bar, readable

__all__ = ["FIGURES", "Figure", "Shown"]

Records = list[dict[str, Any]]
_SHORTER, _LONGER = "shorter is better", "longer is better"
_FORMATS = ("ours", "paimon", "iceberg", "delta", "plain parquet")
_LABELS = {
    "ours": "this library",
    "paimon": "Paimon",
    "iceberg": "Iceberg",
    "delta": "Delta",
    "deltalake": "Delta (delta-rs)",
    "duckdb": "DuckDB",
    "pypaimon-rust": "Paimon (Rust)",
    "plain parquet": "plain Parquet, no table format",
}
_LARGE = 30_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Content of one figure; ``note`` names the bars' unit."""

    text: str
    note: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: the file of results that it shows, and how."""

    name: str
    title: str
    results: str
    show: Callable[[Records], Shown]


def _age(records: Records) -> Shown:
    """Show how long a row takes into the log."""
    value = _values(records)
    sink, transactional, eventual = (
        value[f"{name}, age p50"] for name in ("Spark's Kafka sink", "transactional", "eventual")
    )
    loaded = value["transactional, 50,000 rows/s, with compaction, age p50"]
    direct = value["direct writer, transactional, age p50"]
    return Shown(
        text=(
            f"A row of a Spark stream of 5,000 rows/s can be read in the log {readable(transactional)} s after it was "
            "created, and the same commit covers the files. Spark's own Kafka sink, which writes no files, takes "
            f"{readable(sink)} s."
        ),
        note=f"median age of a row at its reader, milliseconds; {_SHORTER}",
        bars=(
            Bar("Spark's Kafka sink", 1000 * sink, is_ours=False),
            Bar("transactional", 1000 * transactional, is_ours=True),
            Bar("eventual", 1000 * eventual, is_ours=True),
            Bar("transactional, 50,000 rows/s", 1000 * loaded, is_ours=True),
            Bar("Python, 100 rows per commit", direct, is_ours=True),
        ),
    )


def _real_time(records: Records) -> Shown:
    """Show the same in Spark's real-time mode."""
    value = _values(records)
    ours, sink, batches, batches_of_sink = (
        value[f"{name}, age p50"]
        for name in (
            "write_stream(..., real_time=True)",
            "Spark's Kafka sink in real-time mode",
            "write_stream(...)",
            "Spark's Kafka sink in micro-batches",
        )
    )
    p99 = value["write_stream(..., real_time=True), age p99"]
    return Shown(
        text=(
            f"With `write_stream(..., real_time=True)` a row can be read in the log {readable(ours)} ms after it was "
            f"created (p99 {readable(p99)} ms), through a topic and Spark. Spark's bare Kafka sink takes "
            f"{readable(sink)} ms in the same mode."
        ),
        note=f"median age of a row at 5,000 rows/s, milliseconds; {_SHORTER}",
        bars=(
            Bar("Spark's Kafka sink, real-time", sink, is_ours=False),
            Bar("this library, real-time", ours, is_ours=True),
            Bar("Spark's Kafka sink, micro-batches", batches_of_sink, is_ours=False),
            Bar("this library, micro-batches", batches, is_ours=True),
        ),
    )


def _log(records: Records) -> Shown:
    """Show the rows per second through one bucket of the log."""
    value = _values(records)
    write, read = value["write, Arrow to committed"], value["read, committed to Arrow"]
    encoding, encoded = (value[f"confluent-kafka write of {kind}"] for kind in ("rows", "preencoded records"))
    return Shown(
        text=(
            f"One bucket takes {readable(write)} rows/s from Arrow batches to a committed transaction, "
            f"{readable(write / encoding)} times as many as confluent-kafka (librdkafka) with rows that Python encodes "
            "as JSON. Our reader returns Arrow batches; that of confluent-kafka decodes nothing."
        ),
        note=f"rows per second; {_LONGER}",
        bars=(
            Bar("this library, write", write, is_ours=True),
            Bar("confluent-kafka, rows", encoding, is_ours=False),
            Bar("confluent-kafka, encoded before", encoded, is_ours=False),
            Bar("this library, read", read, is_ours=True),
            Bar("confluent-kafka, read", value["confluent-kafka read"], is_ours=False),
        ),
    )


def _upsert_in_python(records: Records) -> Shown:
    """Show upserts of several libraries without Spark."""
    seconds = {each["system"]: each["seconds_min"] for each in records if each["work"] == "W2 upsert"}
    others = ("pypaimon-rust", "duckdb", "deltalake")
    return Shown(
        text=(
            "An upsert of 200,000 rows by key into 3,000,000, without Spark: the LSM tree adds a sorted file and "
            f"rewrites nothing, and every file is synced to disk before the commit. It takes "
            f"{readable(1000 * seconds['ours'])} ms."
        ),
        note=f"one commit, milliseconds; {_SHORTER}",
        bars=tuple(Bar(_LABELS[name], 1000 * seconds[name], is_ours=name == "ours") for name in ("ours", *others)),
    )


def _load(records: Records) -> Shown:
    """Show where this library is slower than its peers."""
    seconds = _through_spark(records, "load, warm")
    ratio = seconds["ours"] / seconds["plain parquet"]
    return Shown(
        text=(
            f"A load of {_LARGE:,} rows through Spark takes {ratio:.1f} times as long as plain Parquet: the rows pass "
            "through Python processes, which sort and encode them. Plain Parquet and Delta keep the rows in the order "
            "in which they come."
        ),
        note=f"a load into a second table of a session, seconds; {_SHORTER}",
        bars=_bars(seconds),
    )


def _upsert_through_spark(records: Records) -> Shown:
    """Show upserts through Spark."""
    seconds = _through_spark(records, "upsert")
    slower = min(seconds["iceberg"], seconds["delta"]) / seconds["ours"]
    return Shown(
        text=(
            f"An upsert of 200,000 rows by key into {_LARGE:,} through Spark. MERGE INTO, by which Iceberg and Delta "
            f"upsert, takes at least {int(slower)} times as long: it searches the table for the keys and rewrites "
            "files."
        ),
        note=f"one commit, seconds; {_SHORTER}",
        bars=_bars(seconds),
    )


def _scan(records: Records) -> Shown:
    """Show scans of tables that were not compacted."""
    seconds = _through_spark(records, "scan, uncompacted")
    return Shown(
        text=(
            f"One aggregate of each column of {_LARGE:,} rows after ten upserts that were not compacted. Spark's own "
            "readers read the files and leave out the rows that newer ones replace."
        ),
        note=f"one query, seconds; {_SHORTER}",
        bars=_bars(seconds),
    )


def _tpch(records: Records) -> Shown:
    """Show the sum of TPC-H's queries."""
    (whole,) = (each for each in records if each["query"] == "all")
    return Shown(
        text=(
            f"TPC-H's 22 queries at scale factor {whole['scale']:g} over tables with uncompacted upserts, of which "
            f"three tenths of the rows have to be merged, take {whole['ratio']:.2f} times as long as over the same "
            "final rows in plain Parquet files."
        ),
        note=f"sum of 22 queries, seconds; {_SHORTER}",
        bars=(
            Bar("this library, uncompacted", whole["ours_seconds"], is_ours=True),
            Bar(_LABELS["plain parquet"], whole["plain_seconds"], is_ours=False),
        ),
    )


def _refresh(records: Records) -> Shown:
    """Show refreshes after small changes, compared with whole queries."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in records:
        if each["work"] == "tpch" and each["counts"]:
            found.setdefault(each["query"], []).append(each)
    ours, full = (
        [statistics.median(each[name] for each in of_query) for of_query in found.values()]
        for name in ("ours_seconds", "plain_seconds")
    )
    five_times = sum(mine * 5 <= whole for mine, whole in zip(ours, full, strict=True))
    return Shown(
        text=(
            f"After 0.1 % of TPC-H's orders have changed, {len(found)} materialized tables are refreshed in "
            f"{readable(sum(ours))} s together; {five_times} of them at least five times as fast as Spark computes "
            "their query."
        ),
        note=f"sum of {len(found)} refreshes, seconds; {_SHORTER}",
        bars=(
            Bar("refresh from the changes", sum(ours), is_ours=True),
            Bar("the queries, by Spark over Parquet", sum(full), is_ours=False),
        ),
    )


def _freshness(records: Records) -> Shown:
    """Show the age of refreshed rows, compared with Flink."""
    ours = {
        (each["rate"], each["query"]): 1000 * each["since_commit_p50"] for each in records if each["work"] == "nexmark"
    }
    of_flink = {
        (each["rate"], each["query"]): 1000 * each["since_commit_p50"]
        for each in records
        if each["work"] == "nexmark flink" and "since_commit_p50" in each
    }
    (rate,) = {rate for rate, _ in of_flink}
    same = statistics.median(ours[key] for key in of_flink)
    flink = statistics.median(of_flink.values())
    bars = [
        Bar(f"this library, {rate:,} events/s", same, is_ours=True),
        Bar(f"Flink 2.0, {rate:,} events/s", flink, is_ours=False),
    ]
    bars += [
        Bar(f"this library, {other:,} events/s", statistics.median(_at(ours, other)), is_ours=True)
        for other in sorted({found for found, _ in ours} - {rate})
    ]
    return Shown(
        text=(
            f"{len(of_flink)} queries of Nexmark as materialized tables that a process keeps fresh contain a commit of "
            f"their sources {readable(same)} ms later. Flink with Paimon, which commits with a checkpoint each second, "
            f"takes {readable(flink)} ms."
        ),
        note=f"age of the answer since the commit, median of the queries' medians, milliseconds; {_SHORTER}",
        bars=tuple(bars),
    )


FIGURES = (
    Figure(name="age", title="Age of a row at its reader", results="latency", show=_age),
    Figure(name="real-time", title="Real-time mode", results="real_time", show=_real_time),
    Figure(name="log", title="Throughput of the log", results="log", show=_log),
    Figure(name="upsert", title="Upserts in Python", results="file_store", show=_upsert_in_python),
    Figure(name="spark-upsert", title="Upserts through Spark", results="spark", show=_upsert_through_spark),
    Figure(name="spark-scan", title="Scans through Spark", results="spark", show=_scan),
    Figure(name="spark-load", title="Loads through Spark", results="spark", show=_load),
    Figure(name="tpch", title="Queries over uncompacted tables", results="tpch", show=_tpch),
    Figure(name="refresh", title="Refreshes of materialized tables", results="incremental", show=_refresh),
    Figure(name="freshness", title="Freshness of materialized tables", results="incremental", show=_freshness),
)


def _values(records: Records) -> dict[str, float]:
    """Return the measurements of a file of named records by their names."""
    return {each["name"]: each["value"] for each in records}


def _through_spark(records: Records, work: str) -> dict[str, float]:
    """Return the median seconds of a work with the larger tables, by table format."""
    return {
        each["system"]: each["seconds_median"]
        for each in records
        if each["work"] == work and each["rows"] == _LARGE and each["system"] in _FORMATS
    }


def _bars(seconds: dict[str, float]) -> tuple[Bar, ...]:
    return tuple(Bar(_LABELS[name], seconds[name], is_ours=name == "ours") for name in _FORMATS if name in seconds)


def _at(ages: dict[tuple[int, str], float], rate: int) -> list[float]:
    return [age for (found, _), age in ages.items() if found == rate]
