"""Separate driver of a kill test: applies a topic to a table, and kills itself at a commit.

``python spark_applied_stream.py`` takes the job as JSON on the command line. ``kill`` is ``{"before": n}`` or
``{"after": n}``, where n counts the commits of this process; empty: it is not killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from itertools import count
from typing import Any


def main() -> None:
    """Run the job to completion, or to its end."""
    job = json.loads(sys.argv[1])
    from storage_lib import DynamicTable, open_catalog
    from storage_lib.spark import read_changelog, session, write_stream
    from storage_lib.spark.versions.spark_feature import SparkFeature

    append, numbers, kill = DynamicTable.append, count(1), job["kill"]

    def append_or_end(table: DynamicTable, *given: Any, **named: Any) -> Any:
        number = next(numbers)
        if kill.get("before") == number:
            end()
        snapshot = append(table, *given, **named)
        if kill.get("after") == number:
            end()
        return snapshot

    DynamicTable.append = append_or_end  # type: ignore[method-assign]
    table = open_catalog(job["warehouse"]).load_table(job["table"])
    spark = session("kill test", master="local[2]", conf=job["conf"])
    rows_max = 7 if SparkFeature.ADMISSION_CONTROL.is_here else None
    df = read_changelog(spark, topic=job["topic"], table=table, options=job["options"], rows_per_trigger_max=rows_max)
    write_stream(df, table, checkpoint_location=job["checkpoint"], available_now=True).awaitTermination()


def end() -> None:
    """Kill the driver with its JVM and all its processes."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
