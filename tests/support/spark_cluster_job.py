"""Driver of the cluster test: writes, streams, compacts and reads one table, and prints the results as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Run the job on the master that the arguments name."""
    from pyspark.sql import functions as sql

    from storage_lib import open_catalog
    from storage_lib.spark import compact, read, session, write, write_stream

    job = json.loads(sys.argv[1])
    table = open_catalog(job["warehouse"], job["catalog_options"]).load_table(job["table"])
    spark = session("cluster test", master=job["master"], conf=job["conf"])
    write(spark.range(1000, numPartitions=4).select("id", sql.lit("batch").alias("v")), table)

    changes = Path(job["directory"], "changes")
    changes.mkdir()
    for number in range(2):
        lines = [json.dumps({"id": number * 100 + key, "v": "stream"}) for key in range(100)]
        (changes / f"{number}.json").write_text("\n".join(lines))
    df = spark.readStream.schema("id long, v string").option("maxFilesPerTrigger", 1).json(str(changes))
    checkpoint = str(Path(job["directory"], "checkpoint"))
    stream = write_stream(df, table, checkpoint_location=checkpoint, available_now=True, compaction=False)
    stream.awaitTermination()

    files_before = table.inspect.files().num_rows
    compact(spark, table)
    executors = spark.sparkContext.parallelize(range(8), 8).map(lambda _: _executor_id()).distinct().count()
    seen = {
        "rows": read(spark, table).count(),
        "files_before": files_before,
        "files_after": table.inspect.files().num_rows,
        "hosts": executors,
    }
    print(json.dumps(seen))
    spark.stop()


def _executor_id() -> str:
    import os

    return os.environ["SPARK_EXECUTOR_DIRS"]


if __name__ == "__main__":
    main()
