"""A Spark driver that refreshes a materialized table and kills itself, its JVM and its workers at a chosen point.

python refreshing_process.py '{"warehouse": ..., "table": ..., "conf": {...}, "point": "leased"}'
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from storage_lib import open_catalog
from storage_lib.spark import refresh, session
from storage_lib.spark.materialized import accumulated_refresh, refresh_table
from storage_lib.spark.materialized.accumulated_state import commit_state
from storage_lib.spark.materialized.refresh_commit import commit_difference
from storage_lib.table.builders.write_builder import WriteBuilder

KILL_POINTS = ("computed", "leased", "accumulated", "committed")
"""Before a lease, with the rows computed; under the lease, before rows are written; after the commit of the state of
accumulators; right after the commit."""


def kill_everything() -> None:
    """Kill this process group: the driver's Python, its JVM and all workers."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(job: dict[str, Any]) -> None:
    """Run the refresh of ``job`` up to its point."""
    begin, commit = WriteBuilder.begin, commit_difference

    def begin_and_die(builder: WriteBuilder, **arguments: Any) -> Any:
        if job["point"] == "computed":
            kill_everything()
        context = begin(builder, **arguments)
        if job["point"] == "leased":
            kill_everything()
        return context

    def commit_and_die(*arguments: Any, **named: Any) -> Any:
        snapshot = commit(*arguments, **named)
        if job["point"] == "committed":
            kill_everything()
        return snapshot

    def accumulate_and_die(*arguments: Any, **named: Any) -> Any:
        state = commit_state(*arguments, **named)
        if job["point"] == "accumulated":
            kill_everything()
        return state

    # mypy does not know that the functions are replaced on purpose.
    setattr(WriteBuilder, "begin", begin_and_die)  # noqa: B010
    setattr(accumulated_refresh, "commit_state", accumulate_and_die)  # noqa: B010
    for each in (refresh_table, accumulated_refresh):
        setattr(each, "commit_difference", commit_and_die)  # noqa: B010
    spark = session("refresh", master="local[2]", conf=job["conf"])
    refresh(spark, open_catalog(job["warehouse"]).load_table(job["table"]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
