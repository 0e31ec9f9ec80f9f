"""Process that runs the programs of the pages, one after the other, each as a main module of its own.

Packages are imported once, and Spark's JVM starts once. A session that a program leaves open is stopped after it.
Takes ``{"program": path}`` by line; answers with what the program has printed, and with the traceback if it has failed.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from contextlib import redirect_stdout
from io import StringIO


def main() -> None:
    """Run programs until the standard input ends. What the JVM prints goes to the log, with the errors."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            print(json.dumps(run(json.loads(line)["program"])), file=answers, flush=True)


def run(program: str) -> dict[str, str]:
    """Run a file as ``python`` does, with nothing of the programs before it among its names."""
    failure = ""
    with redirect_stdout(StringIO()) as printed:
        try:
            runpy.run_path(program, run_name="__main__")
        except BaseException:  # noqa: BLE001  the test judges it
            failure = traceback.format_exc()
        finally:
            stop_spark()
    return {"printed": printed.getvalue(), "failure": failure}


def stop_spark() -> None:
    """Stop the session of the program, if there is one."""
    pyspark = sys.modules.get("pyspark.sql")
    if pyspark is not None and (session := pyspark.SparkSession.getActiveSession()) is not None:
        session.stop()


if __name__ == "__main__":
    main()
