"""TPC-H's 22 queries over this library's tables with three uncompacted upserts, and over Parquet files.

    python -m benchmarks.tpch [--scale 0.1] [--repeats 3] [--data DIRECTORY]

The files have the same final rows. Both run in one JVM, one after the other for each query, and every answer over
merged rows has to equal the answer over the files. tpchgen-cli makes the data, unless ``--data`` names a directory with
``<table>.parquet``; the queries have the specification's validation parameters.

Prints a table, and writes ``benchmarks/results/tpch.json`` and ``tpch.svg``, which keep the figures of other scale
factors. These are not results that the TPC has audited.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.tpch_work.tpch_data import make_tpch_data
from benchmarks.tpch_work.tpch_report import markdown_of, picture_of
from benchmarks.tpch_work.tpch_run import TpchRun, summed, write_tables
from storage_lib import open_catalog
from storage_lib.spark import session

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the benchmark, print the results and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor; the published figures have 1")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=1, help="runs of each query before those that count")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="heap of the driver")
    parser.add_argument("--data", type=Path, help="directory with the tables of that scale factor")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "tpch_benchmark")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.directory, ignore_errors=True)
    try:
        records = measured(arguments)
    finally:
        shutil.rmtree(arguments.directory, ignore_errors=True)
    records.append(summed(records))
    path = arguments.results / "tpch.json"
    before = json.loads(path.read_text()) if path.exists() else []
    kept = [*(each for each in before if each["scale"] != arguments.scale), *records]
    kept.sort(key=lambda each: float(each["scale"]))
    arguments.results.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")
    (arguments.results / "tpch.svg").write_text(picture_of(kept))
    print(markdown_of(records))


def measured(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a record per query."""
    data = arguments.data
    if data is None:
        data = arguments.directory / "data"
        make_tpch_data(data, arguments.scale)
    catalog = open_catalog(str(arguments.directory / "warehouse"))
    say(f"writing the tables of scale factor {arguments.scale:g}")
    write_tables(catalog, data)
    conf = {
        "spark.driver.memory": arguments.memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * arguments.cores),
        "spark.sql.warehouse.dir": str(arguments.directory / "spark-warehouse"),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    spark = session("tpch", master=f"local[{arguments.cores}]", conf=conf)
    records = []
    try:
        run = TpchRun(spark, catalog, data)
        for record in run.measured(arguments.scale, arguments.repeats, warm_ups=arguments.warm_ups):
            say(f"{record['query']}: {record['ours_seconds']:.2f} s, plain {record['plain_seconds']:.2f} s")
            records.append(record)
    finally:
        spark.stop()
    return records


def say(words: str) -> None:
    """Print progress to standard error, apart from the table."""
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
