"""State of a table's sink and of its last validation, read from their files.

The API server may run on another host than the sink, so only the heartbeat file is used, not the process. Each read
takes less than a millisecond and returns None if the file is missing or the directory is not on this machine.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from dynamic_table.quality.data_docs import DataDocs
from dynamic_table.sinks.sink_facts import OF_HEARTBEAT
from dynamic_table.sinks.sink_job import newest_job

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["last_validation", "sink_state"]

STALE_SECONDS = 120
ENDED = ("stopped", "cancelled", "failed", "lost")


def sink_state(jobs: Path, table: str) -> dict[str, Any] | None:
    """Return the newest sink's ``state``, ``age_seconds`` of its heartbeat, the heartbeat's fields, and its ``task``.

    The state of an active sink is ``silent`` if its heartbeat is older than two minutes.
    """
    job = newest_job(jobs / table)
    if job is None:
        return None
    facts: dict[str, Any] = {
        "job": job.directory.name,
        "task": job.task,
        "log": f"{table}/{job.directory.name}/log.txt",
    }
    try:
        written = job.heartbeat_path.stat().st_mtime
        heartbeat = json.loads(job.heartbeat_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {**facts, "state": "starting", "age_seconds": None}
    age = max(0.0, time.time() - written)
    state = str(heartbeat.get("state", "starting")).lower()
    if state not in ENDED:
        state = "silent" if age > STALE_SECONDS else "stopping" if job.stop_path.exists() else state
    facts |= {key: heartbeat[key] for key in OF_HEARTBEAT if heartbeat.get(key) is not None}
    return {**facts, "state": state, "age_seconds": round(age, 1)}


def last_validation(docs: Path, table: str, connection: str) -> dict[str, Any] | None:
    """Return the last validation's snapshot, time, counts and lines, and the URL of its page."""
    pages = DataDocs(root=docs, table=table)
    last = pages.last()
    if last is None:
        return None
    page = last.pop("page", None)
    return {**last, "url": pages.url_of(page, connection) if page else None}
