"""The records as Markdown tables and as a picture."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.peers.bars import bars

Record = dict[str, Any]
Rows = list[tuple[str, ...]]


def markdown_of(records: list[Record]) -> str:
    """Return a table for each work."""
    tables = [tpch_table(records), nexmark_table(records), large_table(records)]
    return "\n\n".join(_markdown(each) for each in tables if len(each) > 1)


def tpch_table(records: list[Record]) -> Rows:
    """Return medians of the refreshes that count, by query; the head first. NONE: no source of the query changed."""
    rows: Rows = [
        ("TPC-H, scale", "query", "refresh", "why full", "rows read", "rows written", "ours", "full, Spark", "ratio")
    ]
    for (scale, query), found in _grouped(records, "tpch", "scale", "query").items():
        ours, plain = (_median(found, name) for name in ("ours_seconds", "plain_seconds"))
        modes = "/".join(sorted({each["mode"] for each in found}))
        why = next((each["reason"].partition(";")[0] for each in found if each["mode"] == "full"), "")
        counts = [f"{_median(found, name):,.0f}" for name in ("rows_read", "rows_written")]
        rows.append((f"{scale:g}", query, modes, why, *counts, _seconds(ours), _seconds(plain), f"{ours / plain:.2f}"))
    return rows


def nexmark_table(records: list[Record]) -> Rows:
    """Return the ages by rate and query, and those of Flink where they were measured; the head first."""
    rows: Rows = [
        (
            *("Nexmark, events/s", "query", "refresh", "seconds of a refresh", "age since the commit, p50", "p99"),
            *("since the event, p50", "p99", "Flink, since the commit, p50", "p99"),
        )
    ]
    names = ("refresh_seconds", "since_commit_p50", "since_commit_p99", "since_creation_p50", "since_creation_p99")
    of_flink = {(each["rate"], each["query"]): each for each in records if each["work"] == "nexmark flink"}
    rows += [
        (
            *(f"{each['rate']:,}", each["query"], each["mode"], *(_seconds(each[name]) for name in names)),
            *_ages_of_flink(of_flink.get((each["rate"], each["query"]))),
        )
        for each in records
        if each["work"] == "nexmark"
    ]
    return rows


def _ages_of_flink(record: Record | None) -> tuple[str, str]:
    if record is None:
        return "", ""
    if "refused" in record:
        return "refused", "refused"
    if "late" in record:
        return "late", "late"
    return _seconds(record["since_commit_p50"]), _seconds(record["since_commit_p99"])


def large_table(records: list[Record]) -> Rows:
    """Return medians of the refreshes that count, by number of rows, and the largest memory; the head first."""
    rows: Rows = [("rows", "changed", "refresh", "ours", "query", "memory: JVM", "driver's Python", "Python workers")]
    for (count, changed), found in _grouped(records, "large table", "rows", "changed").items():
        seconds = [_seconds(_median(found, name)) for name in ("ours_seconds", "query_seconds")]
        memory = [
            f"{max(each[name] for each in found) / 2**30:.2f} GiB"
            for name in ("jvm_bytes", "driver_bytes", "workers_bytes")
        ]
        rows.append((f"{count:,}", f"{changed:,}", found[0]["mode"], *seconds, *memory))
    return rows


def picture_of(records: list[Record]) -> str:
    """Return a bar chart of TPC-H's largest scale as an SVG, or of Nexmark's ages without TPC-H."""
    scales = [each["scale"] for each in records if each["work"] == "tpch"]
    if not scales:
        ages = {
            f"{each['query']}, {each['rate']:,} events/s": 1000 * each["since_commit_p50"]
            for each in records
            if each["work"] == "nexmark"
        }
        return bars("Nexmark, median age in milliseconds: shorter is better", ages)
    figures = {}
    for (scale, query), found in _grouped(records, "tpch", "scale", "query").items():
        if scale == max(scales):
            figures[f"{query} refresh"] = 1000 * _median(found, "ours_seconds")
            figures[f"{query} full, Spark"] = 1000 * _median(found, "plain_seconds")
    return bars(f"TPC-H, scale factor {max(scales):g}, refresh after 0.1 % of changes, in milliseconds", figures)


def _grouped(records: list[Record], work: str, *names: str) -> dict[tuple[Any, ...], list[Record]]:
    found: dict[tuple[Any, ...], list[Record]] = {}
    for each in records:
        if each["work"] == work and each["counts"]:
            found.setdefault(tuple(each[name] for name in names), []).append(each)
    return found


def _median(records: list[Record], name: str) -> float:
    return float(statistics.median(each[name] for each in records))


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


def _markdown(rows: Rows) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [rows[0], ("---",) * len(rows[0]), *rows[1:]])
