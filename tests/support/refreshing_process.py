"""A Spark driver that refreshes a materialized table and kills itself, its JVM and its workers at a chosen point.

python refreshing_process.py '{"warehouse": ..., "table": ..., "conf": {...}, "point": "leased"}'
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from storage_lib import open_catalog
from storage_lib.duckdb import duckdb_engine
from storage_lib.spark import refresh, session
from storage_lib.spark.engine import accumulated_refresh, apply_changes, whole_answer
from storage_lib.table.builders.write_builder import WriteBuilder

KILL_POINTS = ("computed", "leased", "accumulated", "committed")
"""Before a lease, with the rows computed; under the lease, before rows are written; after the commit of the state of
accumulators; right after the commit."""


def kill_everything() -> None:
    """Kill this process group: the driver's Python, its JVM and all workers."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def and_die(commit: Callable[..., Any], is_point: bool) -> Callable[..., Any]:  # noqa: FBT001  of one caller
    """Return a commit after which everything is killed, if this is the point."""

    def committed(*arguments: Any, **named: Any) -> Any:
        done = commit(*arguments, **named)
        if is_point:
            kill_everything()
        return done

    return committed


def main(job: dict[str, Any]) -> None:
    """Run the refresh of ``job`` up to its point."""
    begin = WriteBuilder.begin

    def begin_and_die(builder: WriteBuilder, **arguments: Any) -> Any:
        if job["point"] == "computed":
            kill_everything()
        context = begin(builder, **arguments)
        if job["point"] == "leased":
            kill_everything()
        return context

    # mypy does not know that the functions are replaced on purpose.
    setattr(WriteBuilder, "begin", begin_and_die)  # noqa: B010
    points = {
        "accumulated": ("commit_state", "commit_state_of"),
        "committed": ("commit_difference", "commit_difference_of"),
    }
    for point, names in points.items():
        for module in (duckdb_engine, accumulated_refresh, apply_changes, whole_answer):
            for name in names:
                if hasattr(module, name):
                    setattr(module, name, and_die(getattr(module, name), job["point"] == point))
    spark = session("refresh", master="local[2]", conf=job["conf"])
    refresh(spark, open_catalog(job["warehouse"]).load_table(job["table"]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
