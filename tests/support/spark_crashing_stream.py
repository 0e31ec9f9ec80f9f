"""Separate driver of the kill test: streams JSON files into a table, batch by batch, until all are written.

``python spark_crashing_stream.py`` takes the job as JSON on the command line.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Run the job to completion, or to the requested crash."""
    job = json.loads(sys.argv[1])
    if "crash" in job:
        os.environ["SPARK_CRASH"] = json.dumps({**job["crash"], "group": os.getpgid(0)})
    from storage_lib import open_catalog
    from storage_lib.spark import session, write_stream
    from storage_lib.spark.versions.source_names import free_names
    from tests.support.spark_crash_points import CrashingSource

    table = open_catalog(job["warehouse"], job["catalog_options"]).load_table(job["table"])
    spark = session("kill test", master="local[2]", conf=job["conf"])
    free_names(spark, [CrashingSource.name()])
    spark.dataSource.register(CrashingSource)
    changes = (
        spark.readStream.schema("id long, v string, _row_kind string")
        .option("maxFilesPerTrigger", 1)
        .json(job["input"])
    )
    stream = write_stream(changes, table, checkpoint_location=job["checkpoint"], available_now=True, compaction=False)
    stream.awaitTermination()


if __name__ == "__main__":
    main()
