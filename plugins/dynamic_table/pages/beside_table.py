"""What stands beside a table and is told by files: its sink's heartbeat and its last validation.

The API server may see neither the sink's process nor its host, so that here only the heartbeat counts. Both are read in
well under a millisecond, and are None where there is nothing, or where the directory is not this machine's.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from dynamic_table.quality.data_docs import DataDocs
from dynamic_table.sinks.sink_job import newest_job

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["sink_beside", "validation_beside"]

STALE_SECONDS = 120
OF_HEARTBEAT = ("batch_id", "row_count", "rows_per_second", "error", "compaction_error", "tiering_error")
ENDED = ("stopped", "cancelled", "failed", "lost")


def sink_beside(jobs: Path, table: str) -> dict[str, Any] | None:
    """Return the newest sink's ``state``, ``age_seconds`` of its heartbeat, and what that says.

    A sink that works and has said nothing for two minutes is ``silent``.
    """
    job = newest_job(jobs / table)
    if job is None:
        return None
    try:
        written = job.heartbeat_path.stat().st_mtime
        heartbeat = json.loads(job.heartbeat_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"state": "starting", "job": job.directory.name, "age_seconds": None}
    age = max(0.0, time.time() - written)
    state = str(heartbeat.get("state", "starting")).lower()
    if state not in ENDED:
        state = "silent" if age > STALE_SECONDS else "stopping" if job.stop_path.exists() else state
    told = {key: heartbeat[key] for key in OF_HEARTBEAT if heartbeat.get(key) is not None}
    return {"state": state, "job": job.directory.name, "age_seconds": round(age, 1), **told}


def validation_beside(docs: Path, table: str, connection: str) -> dict[str, Any] | None:
    """Return the last validation's snapshot, time, counts and lines, and where its page is."""
    kept = DataDocs(root=docs, table=table)
    last = kept.last()
    if last is None:
        return None
    page = last.pop("page", None)
    return {**last, "url": kept.url_of(page, connection) if page else None}
