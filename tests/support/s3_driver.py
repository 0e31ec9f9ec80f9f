"""Separate driver that reads a table in S3 with Hadoop's client, which the session of the other tests does not have.

``python s3_driver.py`` takes the job as JSON on the command line: ``warehouse``, ``catalog_options``, ``conf`` of the
session, and ``queries`` of SQL. It prints one JSON value by line for each query: the rows, what EXPLAIN says about the
files, or the error.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.support.spark_jars import SPARK_S3, jars_in


def main() -> None:
    """Answer the queries."""
    job = json.loads(sys.argv[1])
    from storage_lib import open_catalog
    from storage_lib.spark import session
    from storage_lib.sql import Session

    spark = session("s3", master="local[2]", conf={**job["conf"], "spark.jars": jars_in(SPARK_S3)})
    spark.sparkContext.setLogLevel("OFF")
    with Session(spark, open_catalog(job["warehouse"], job["catalog_options"])) as sql:
        for query in job["queries"]:
            print(json.dumps(_answer(sql, query)), flush=True)


def _answer(sql: Any, query: str) -> dict[str, Any]:
    try:
        explained = sql.execute(f"EXPLAIN EXTENDED {query}").to_arrow().to_pylist()[0]
        rows = sql.execute(query).to_arrow().to_pylist()
    except Exception as error:  # noqa: BLE001  the test judges it
        return {"error": f"{type(error).__name__}: {error}"}
    (text,) = explained.values()
    return {"rows": rows, "plan": text}


if __name__ == "__main__":
    main()
