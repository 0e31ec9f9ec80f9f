"""Separate driver that reads tables in S3 with Hadoop's client, which the session of the other tests does not have.

``python s3_driver.py`` takes the ``conf`` of its session as JSON on the command line, and jobs by line: ``warehouse``,
``catalog_options``, and ``queries`` of SQL. It answers each job with one value for each query: the rows, what EXPLAIN
says about the files, or the error.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tests.support.spark_jars import SPARK_S3, jars_in


def main() -> None:
    """Answer the jobs until the standard input ends. What the JVM prints goes to the log, with the errors."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        from storage_lib import open_catalog
        from storage_lib.spark import session
        from storage_lib.sql import Session

        conf = {**json.loads(sys.argv[1]), "spark.jars": jars_in(SPARK_S3)}
        spark = session("s3", master="local[2]", conf=conf)
        spark.sparkContext.setLogLevel("OFF")
        for line in sys.stdin:
            job = json.loads(line)
            with Session(spark, open_catalog(job["warehouse"], job["catalog_options"])) as sql:
                found = [_answer(sql, query) for query in job["queries"]]
            print(json.dumps({"answers": found}), file=answers, flush=True)


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
