"""One run of a stream from ``db.source`` to ``db.target``, with rows that it writes before; in any version of Spark.

Arguments: warehouse, the catalog's options, Spark's settings, and the first and last of the written ids; without ids to
write, it only reads. Prints the version that it used and what it read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from storage_lib import open_catalog
from storage_lib.spark import read, read_stream, session, write, write_stream
from storage_lib.sql import Session


def main(warehouse: str, options: str, conf: str, first: str, last: str) -> None:
    """Write rows, stream them, and print Spark's version and the sums of both tables."""
    catalog = open_catalog(warehouse, json.loads(options))
    source, target = (catalog.load_table(f"db.{name}") for name in ("source", "target"))
    spark = session("upgrade", master="local[2]", conf=json.loads(conf))
    spark.sparkContext.setLogLevel("ERROR")
    ids = spark.range(int(first), int(last))
    if first != last:
        written = ids.selectExpr("id", "CAST(id AS STRING) AS v", "CAST(id % 7 AS INT) AS n")
        write(written, source)
        write(written.where("id % 5 = 0").selectExpr("id", "'newer' AS v", "1 AS n"), source)
        stream = write_stream(
            read_stream(spark, source, startup="full"),
            target,
            checkpoint_location=str(Path(warehouse).parent / "checkpoint"),
            available_now=True,
        )
        stream.awaitTermination()
    query = "SELECT count(*), sum(id), sum(n), count(DISTINCT v) FROM source"
    by_sql = Session(spark, catalog, database="db").execute(query).to_arrow().to_pylist()
    sums = ("count(*)", "sum(id)", "sum(n)", "count(DISTINCT v)")
    (by_frame,) = read(spark, target.refresh()).selectExpr(*sums).collect()
    print(json.dumps([spark.version, list(by_sql[0].values()), list(by_frame)]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
