"""One Spark session of one format, in its own process: reads an order per line, and answers each with a line of JSON.

    python -m benchmarks.spark_engine.worker NAME DIRECTORY SETTINGS

Runs in the format's environment, so it imports nothing but pyspark and what the format needs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.spark_engine.formats.catalogue import started_format
from benchmarks.spark_engine.python_traffic import PythonTraffic
from benchmarks.spark_engine.table_format import SessionOrder

if TYPE_CHECKING:
    from benchmarks.spark_engine.table_format import TableFormat


class Worker:
    """A started session; ``do`` runs one order."""

    def __init__(self, name: str, order: SessionOrder) -> None:
        self._format: TableFormat = started_format(name, order)
        self._spark = self._format.spark
        self._spark.sql("SELECT 1").collect()
        # The peers have no Python workers.
        self._traffic = PythonTraffic(self._spark) if name == "ours" else None

    @property
    def version(self) -> str:
        """The release of Spark."""
        return self._spark.version

    def do(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return the seconds, the bytes through Python workers, and the rows of a query."""
        begin = time.perf_counter()
        rows = self._run(order)
        seconds = time.perf_counter() - begin
        through_python = self._traffic.bytes_since_last_call() if self._traffic else 0
        return {"seconds": seconds, "python_bytes": through_python, "rows": rows}

    def _run(self, order: dict[str, Any]) -> list[list[Any]]:
        table = order["table"]
        match order["do"]:
            case "create":
                self._format.create(table)
            case "load":
                self._format.load(table, self._spark.read.parquet(order["rows"]))
            case "upsert":
                self._format.upsert(table, self._spark.read.parquet(order["rows"]))
            case "compact":
                self._format.compact(table)
            case "query":
                frame = self._format.query(order["text"], table, through_view=order["through_view"])
                return [[_plain(value) for value in row] for row in frame.collect()]
            case other:
                message = f"unknown order {other!r}"
                raise ValueError(message)
        return []


def _plain(value: object) -> object:
    """Return a value that JSON can hold without loss."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def main(name: str, directory: str, settings: str) -> None:
    """Start the session, say so, and run orders until the input ends."""
    # Spark and its JVM may print to standard output; the answers keep it to themselves.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)

        def say(answer: dict[str, Any]) -> None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

        worker = Worker(name, SessionOrder(directory=Path(directory), **json.loads(settings)))
        say({"spark": worker.version})
        for line in sys.stdin:
            say(worker.do(json.loads(line)))


if __name__ == "__main__":
    main(*sys.argv[1:])
