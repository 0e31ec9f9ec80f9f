"""Runs in the interpreter of .local/iceberg_spark: reads a table's Iceberg view with Spark and Iceberg's connector.

rows <directory of the view> <out.arrow> [<snapshot id>]
count <directory of the view> [<filter>]
"""

from __future__ import annotations

import json
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

JARS = Path(__file__).resolve().parents[2] / ".local" / "iceberg_runtime" / "lib"


def main(verb: str, view: str, *more: Any) -> dict[str, Any]:
    if verb == "count":
        frame = opened(view)
        return {"count": (frame.where(more[0]) if more else frame).count()}
    out, *snapshot_id = more
    rows = opened(view, *snapshot_id).toArrow()
    with pa.OSFile(out, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    return {}


def opened(view: str, snapshot_id: int | None = None) -> DataFrame:
    reader = session().read.format("iceberg")
    if snapshot_id is not None:
        reader = reader.option("versionAsOf", snapshot_id)
    return reader.load(view)


@cache
def session() -> SparkSession:
    settings = {
        "spark.jars": ",".join(map(str, JARS.glob("*.jar"))),
        "spark.master": "local[1]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.appName("reads-iceberg")
    for name, value in settings.items():
        builder = builder.config(name, value)
    opened_session = builder.getOrCreate()
    opened_session.sparkContext.setLogLevel("ERROR")
    return opened_session


def serve() -> None:
    """Serve commands from standard input, all by one JVM."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            answer = main(*json.loads(line))
        except Exception as error:  # noqa: BLE001  told to the tests
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()
