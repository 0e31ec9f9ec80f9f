"""Driver whose tasks fail once after they have written. Arguments: warehouse, JSON of its options, names of tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark import TaskContext

from storage_lib import open_catalog
from storage_lib.spark import session, write
from storage_lib.spark.tasks.table_tasks import TaskMessage, write_task
from storage_lib.spark.writing import write_job

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.catalog.table_cache import TableKey
    from storage_lib.table.protocol.write_context import WriteContext


def fail_once_after_writing(
    key: TableKey, write_context: WriteContext, batches: Iterable[pa.RecordBatch], *, adds_up: bool = False
) -> TaskMessage:
    """Write as ``write_task``, but fail the first attempt of each task, as if its machine were lost."""
    message = write_task(key, write_context, batches, adds_up=adds_up)
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        raise RuntimeError("lost after it had written")
    return message


def main(warehouse: str, options: str, tables: list[str]) -> None:
    """Write random rows into each table, twice."""
    write_job.write_task = fail_once_after_writing  # type: ignore[attr-defined]
    spark = session("repeated tasks", master="local[2,2]", conf=json.loads(options)["spark"])
    spark.sparkContext.setLogLevel("OFF")
    catalog = open_catalog(warehouse, json.loads(options)["catalog"])
    for name in tables:
        for start in (0, 50):
            rows = spark.range(start, start + 100).selectExpr("id", "string(rand()) AS v", "1 AS n")
            write(rows, catalog.load_table(name))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
