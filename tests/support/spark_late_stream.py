"""Driver that copies a table by a stream, with its environment's Python. Arguments: warehouse, Spark's settings."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from storage_lib import open_catalog
from storage_lib.spark import read_stream, session, write_stream


def main(warehouse: str, conf: str) -> None:
    """Copy ``db.t`` to ``db.copy``; print how often the query was started."""
    catalog = open_catalog(warehouse)
    spark = session("late", master="local[2]", conf=json.loads(conf))
    stream = write_stream(
        read_stream(spark, catalog.load_table("db.t")),
        catalog.load_table("db.copy"),
        checkpoint_location=str(Path(warehouse) / "checkpoint"),
    )
    first = stream.query
    stream.processAllAvailable()
    print(json.dumps([stream.isActive, stream.query.id == first.id, stream.query.runId == first.runId]))
    stream.stop()
    print(json.dumps([stream.isActive, stream.error()]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
