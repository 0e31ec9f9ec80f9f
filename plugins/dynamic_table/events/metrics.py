"""Metrics (StatsD or OpenTelemetry, as Airflow is configured) and log lines of operators.

    dynamic_table.commits            counter   table, op             commits that operators made
    dynamic_table.rows               counter   table, op             rows of these commits, if known
    dynamic_table.change_age         gauge     table                 seconds since the newest change
    dynamic_table.runs_max           gauge     table                 sorted runs of the bucket with the most
    dynamic_table.snapshots          gauge     table                 snapshots that have not expired
    dynamic_table.size               gauge     table                 bytes of the live files
    dynamic_table.rejected           gauge     table                 rejected records of its sources
    dynamic_table.sink.<fact>        gauge     table                 lag, heartbeat_age_seconds, commit_age_seconds

The third column lists the tags. ``ListTablesInNeedOperator`` reports the gauges of the tables that it examines, a
sink's task those of its sink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from dynamic_table.versions.sdk_stats import stats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib.table.inspect.table_health import TableHealth

__all__ = ["report_commit", "report_health", "report_sink"]

OF_SINKS = ("lag", "heartbeat_age_seconds", "commit_age_seconds")
log = structlog.get_logger(__name__)


def report_commit(table: str, op: str, version: int, details: Mapping[str, Any]) -> None:
    """Count a commit and write its fields as one line into the task's log."""
    tags = {"table": table, "op": op}
    stats.incr("dynamic_table.commits", tags=tags)
    rows = details.get("rows")
    if isinstance(rows, int):
        stats.incr("dynamic_table.rows", rows, tags=tags)
    log.info("table_commit", table=table, op=op, snapshot_id=version, rows=rows)


def report_health(table: str, health: TableHealth, now_millis: int) -> None:
    """Report the gauges of a table."""
    tags = {"table": table}
    if health.change_millis is not None:
        stats.gauge("dynamic_table.change_age", max(0.0, (now_millis - health.change_millis) / 1000), tags=tags)
    stats.gauge("dynamic_table.runs_max", health.runs_max, tags=tags)
    stats.gauge("dynamic_table.snapshots", health.snapshot_count, tags=tags)
    stats.gauge("dynamic_table.size", health.size_bytes, tags=tags)
    stats.gauge("dynamic_table.rejected", health.rejected_count, tags=tags)
    if health.view_lag is not None:
        stats.gauge("dynamic_table.view_lag", health.view_lag, tags=tags)
    if health.view_lag is not None or health.view_problem is not None:
        stats.gauge("dynamic_table.view_problems", int(health.view_problem is not None), tags=tags)


def report_sink(table: str, facts: Mapping[str, Any]) -> None:
    """Report the gauges of a sink and write them as one line into the task's log."""
    for name in OF_SINKS:
        if isinstance(facts.get(name), int | float):
            stats.gauge(f"dynamic_table.sink.{name}", facts[name], tags={"table": table})
    log.info("sink_report", table=table, **facts)
