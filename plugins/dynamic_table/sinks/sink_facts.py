"""State of a table's sink as a small XCom value: heartbeat, lag, and the table's last commit."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from dynamic_table.versions.sdk_exceptions import AirflowException

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamic_table.sinks.sink_job import SinkJob
    from storage_lib import DynamicTable

__all__ = ["OF_HEARTBEAT", "sink_facts"]

OF_HEARTBEAT = (
    "batch_id",
    "row_count",
    "rejected_count",
    "skipped_count",
    "rows_per_second",
    "error",
    "compaction_error",
    "tiering_error",
)


def sink_facts(job: SinkJob, open_table: Callable[[], DynamicTable], *, with_lag: bool = True) -> dict[str, Any]:
    """Return the state. Ages are in seconds; the heartbeat's age is by the clock of its file system.

    ``lag`` counts records of an external topic that are not in the table yet; None if the source is a table. If the
    topic or the table can't be read, ``unknown`` has the reason; that is not an error, since the sink may be healthy.
    """
    from storage_lib.errors import StorageError

    report = job.report()
    facts: dict[str, Any] = {"job": str(job.directory), "state": report.state.value}
    facts |= {key: report.heartbeat[key] for key in OF_HEARTBEAT if report.heartbeat.get(key) is not None}
    facts["heartbeat_age_seconds"] = _age_seconds(job)
    try:
        table = open_table()
        health = table.inspect.health()
        facts |= {"snapshot_id": health.snapshot_id, "commit_millis": health.commit_millis}
        if health.commit_millis is not None:
            facts["commit_age_seconds"] = round(max(0.0, time.time() - health.commit_millis / 1000), 1)
        if with_lag:
            facts["lag"] = _lag(job, table)
    except (StorageError, OSError, ImportError, AirflowException) as unknown:
        facts["unknown"] = f"{type(unknown).__name__}: {unknown}"
    return facts


def _age_seconds(job: SinkJob) -> float | None:
    """Return the heartbeat's age in seconds; None before the first heartbeat."""
    try:
        written = job.heartbeat_path.stat().st_mtime
    except FileNotFoundError:
        return None
    return round(max(0.0, time.time() - written), 1)


def _lag(job: SinkJob, table: DynamicTable) -> int | None:
    from storage_lib.table.sources.source_lag import source_lag

    spec = job.spec_text()
    source = None if spec is None else json.loads(spec)["source"]
    if source is None or source["kind"] != "debezium_json":
        return None
    return source_lag(table, source["name"], {**table.address.options, **source["options"]})
