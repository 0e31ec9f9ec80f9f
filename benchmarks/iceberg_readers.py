"""Readers of Iceberg on a table with a view and on a native Iceberg table of the same rows, after ten upserts.

    python3 docker/local/stack_setup.py iceberg_spark
    python -m benchmarks.iceberg_readers [--rows 1000000] [--upserts 10] [--changed 100000] [--rounds 5]

The native table is made by MERGE of Spark with Iceberg's connector, merge-on-read and format version 3. Tables of ours:
*ours* compacts as it does by default, *ours uncompacted* never does. Each round reads all tables in turns; a figure is
a median, and *times* its ratio to the native table. All answers are compared.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.iceberg_view import COLUMNS, rows_of
from storage_lib import DynamicTable, open_catalog

VIEW = {"bucket": "2", "metadata.iceberg.storage": "table-location"}
OURS = {"ours": VIEW, "ours uncompacted": {**VIEW, "write-only": "true"}}
LOCAL = Path(__file__).resolve().parents[1] / ".local"
WORK = Path(__file__).with_name("iceberg_work")


def main() -> None:
    """Run the benchmark and print one JSON record per figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--upserts", type=int, default=10)
    parser.add_argument("--changed", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if not (LOCAL / "iceberg_spark" / "bin" / "python").exists():
        sys.exit("Iceberg's Spark is needed: python3 docker/local/stack_setup.py iceberg_spark")
    scratch = Path(tempfile.mkdtemp(prefix="iceberg-readers-"))
    try:
        batches = _batches(arguments.rows, arguments.upserts, arguments.changed)
        tables = _tables(scratch)
        upserts = {name: _upserted(table, batches) for name, table in tables.items()}
        native = _native(scratch, batches, tables, arguments.rounds)
        others = _scanned(native["metadata"], tables, arguments.rounds)
    finally:
        shutil.rmtree(scratch)
    _check(_newest_rows(batches), native["answers"], others["answers"])
    work = f"upsert of {arguments.changed} random keys into {arguments.rows} rows, {arguments.upserts} times"
    _report(work, {"native, MERGE of Spark": native["merges"], **upserts}, "native, MERGE of Spark")
    for reader, works in {"spark": native["seconds"], **others["seconds"]}.items():
        for scan, seconds in works.items():
            _report(f"{reader}: {scan}", seconds, "native")


def _batches(rows: int, upserts: int, changed: int) -> list[pa.Table]:
    rng = np.random.default_rng(1)
    keys = [np.arange(rows), *(np.sort(rng.choice(rows, changed, replace=False)) for _ in range(upserts))]
    return [rows_of(each, number) for number, each in enumerate(keys)]


def _tables(scratch: Path) -> dict[str, DynamicTable]:
    catalog = open_catalog(str(scratch / "ours"), {"log.system": "none"})
    return {
        name: catalog.create_table(f"bench.{name.replace(' ', '_')}", COLUMNS, primary_key=["id"], options=options)
        for name, options in OURS.items()
    }


def _upserted(table: DynamicTable, batches: list[pa.Table]) -> list[float]:
    table.append(batches[0])
    table.compact()
    seconds = []
    for batch in batches[1:]:
        started = time.perf_counter()
        table.upsert(batch)
        seconds.append(time.perf_counter() - started)
    return seconds


def _native(scratch: Path, batches: list[pa.Table], tables: dict[str, DynamicTable], rounds: int) -> dict[str, Any]:
    """Make the native table, and read all tables by Spark."""
    rows = scratch / "rows"
    rows.mkdir()
    for number, batch in enumerate(batches):
        pq.write_table(batch, rows / (f"upsert-{number:03}.parquet" if number else "base.parquet"))
    asked = {
        "rows": str(rows),
        "warehouse": str(scratch / "native"),
        "jars": str(LOCAL / "iceberg_runtime" / "lib"),
        "tables": {name: table.location for name, table in tables.items()},
        "rounds": rounds,
    }
    return _answer_of(LOCAL / "iceberg_spark" / "bin" / "python", WORK / "native_table.py", asked)


def _scanned(native: str, tables: dict[str, DynamicTable], rounds: int) -> dict[str, Any]:
    """Read all tables by PyIceberg and DuckDB."""
    places = {"native": native, **{name: _metadata(table) for name, table in tables.items()}}
    asked = {"tables": places, "rounds": rounds}
    return _answer_of(LOCAL / "iceberg" / "bin" / "python", WORK / "timed_scans.py", asked)


def _metadata(table: DynamicTable) -> str:
    view = table.context.iceberg_view
    document = None if view is None else view.document()
    assert document is not None  # noqa: S101  created with a view
    return document[0]


def _answer_of(python: Path, program: Path, asked: dict[str, Any]) -> dict[str, Any]:
    ran = subprocess.run([python, program, json.dumps(asked)], stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def _newest_rows(batches: list[pa.Table]) -> list[int]:
    """Return count and sum of ``n`` of the rows that the newest version of each key makes."""
    n = batches[0]["n"].to_numpy().copy()
    for batch in batches[1:]:
        n[batch["id"].to_numpy()] = batch["n"].to_numpy()
    return [len(n), int(n.sum())]


def _check(expected: list[int], of_spark: dict[str, Any], of_others: dict[str, Any]) -> None:
    answers = {
        **{f"spark, {name}": answer for name, answer in of_spark.items()},
        **{f"{work}, {name}": answer for name, works in of_others.items() for work, answer in works.items()},
    }
    wrong = {what: answer for what, answer in answers.items() if answer != expected}
    if wrong:
        sys.exit(f"wrong rows; expected count and sum {expected}, but: {wrong}")


def _report(work: str, seconds: dict[str, list[float]], reference: str) -> None:
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    times = {name: round(each / medians[reference], 2) for name, each in medians.items() if name != reference}
    print(json.dumps({"work": work, "seconds_median": medians, "times": times}), flush=True)


if __name__ == "__main__":
    main()
