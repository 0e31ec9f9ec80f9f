"""Driver of the cluster test: writes, streams, compacts and reads one table, and prints the results as JSON.

``spark-submit`` runs it in a directory with ``job.json``: the table's catalog, and the name of a second, empty table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main() -> None:
    """Run the job on the master of ``spark-submit``."""
    from pyspark.sql import functions as sql

    from storage_lib import open_catalog
    from storage_lib.spark import compact, read, read_stream, session, write, write_stream

    job = json.loads(Path("job.json").read_text())
    catalog = open_catalog(job["warehouse"], job["catalog_options"])
    table, copy = catalog.load_table(job["table"]), catalog.load_table(job["copy"])
    spark = session("cluster test")
    write(spark.range(1000, numPartitions=4).select("id", sql.lit("load").alias("v")), table)
    write(spark.range(900, 1100, numPartitions=4).select("id", sql.lit("upsert").alias("v")), table)

    changes = Path("changes").absolute()
    changes.mkdir()
    for number in range(2):
        lines = [json.dumps({"id": number * 100 + key, "v": "stream"}) for key in range(100)]
        (changes / f"{number}.json").write_text("\n".join(lines))
    df = spark.readStream.schema("id long, v string").option("maxFilesPerTrigger", 1).json(changes.as_uri())
    checkpoints = Path("checkpoints").absolute()
    stream = write_stream(df, table, checkpoint_location=str(checkpoints / "t"), available_now=True, compaction=False)
    stream.awaitTermination()

    uncompacted = read(spark, table)
    merged = {"native_files": len(uncompacted.inputFiles()), "rows": _rows(uncompacted)}
    compact(spark, table)
    compacted = read(spark, table)
    native = {"native_files": len(compacted.inputFiles()), "rows": _rows(compacted)}

    stream = write_stream(
        read_stream(spark, table), copy, checkpoint_location=str(checkpoints / "copy"), available_now=True
    )
    stream.awaitTermination()
    executors = spark.sparkContext.parallelize(range(8), 8).map(lambda _: _executor()).distinct().collect()
    print(json.dumps({"merged": merged, "native": native, "copy": _rows(read(spark, copy)), "executors": executors}))
    spark.stop()


def _rows(df: DataFrame) -> dict[str, int]:
    """Return the number of rows by their value of ``v``."""
    return {row["v"]: row["count"] for row in df.groupBy("v").count().collect()}


def _executor() -> tuple[str, str]:
    """Return what distinguishes this executor from others, and the file from which it has imported the library."""
    import os

    import storage_lib

    return os.environ["SPARK_EXECUTOR_DIRS"], storage_lib.__file__


if __name__ == "__main__":
    main()
