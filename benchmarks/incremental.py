"""Materialized tables: TPC-H with its refresh functions, Nexmark, and sums over one large table.

    python -m benchmarks.incremental [--works tpch,nexmark,large] [--scale 1] [--queries Q01,Q05,q00] [--pairs 3]
        [--rates 1000,5000] [--seconds 60] [--flink] [--rows 60000000]

tpch: the 22 queries as materialized tables; after each refresh function (RF1 inserts, RF2 deletes 0.1 % of the orders)
each table is refreshed, and the query computed in full by plain Spark over Parquet files of the same rows, and written
to Parquet, in the same session. nexmark: one query after the other is kept fresh while a process writes events,
updates and deletions; the age of a change is the time from its source's commit, and from the event, to the commit of
the refresh that contains it; with ``--flink``, a streaming job of Flink with Paimon's connector then does the same.
large: 1,000 of ``--rows`` rows change, and sums and counts by group are refreshed; the memory of the driver's processes
is sampled.

Each work has a process and a Spark session of its own. After each refresh of tpch and large, and at the end of each
query of nexmark, the rows are compared with the query's answer by DuckDB; a wrong row ends the run. Prints tables, and
writes ``benchmarks/results/incremental.json`` and ``incremental.svg``, which keep the figures of other sizes. These are
not results that the TPC has audited.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docker" / "local"))

from benchmarks.incremental_work.large_table import LargeTableWork
from benchmarks.incremental_work.nexmark_flink import NexmarkFlink
from benchmarks.incremental_work.nexmark_refreshes import NexmarkWork
from benchmarks.incremental_work.nexmark_texts import LEFT_OUT, nexmark_queries
from benchmarks.incremental_work.report import markdown_of, picture_of
from benchmarks.incremental_work.sessions import SessionSettings
from benchmarks.incremental_work.tpch_refreshes import TpchWork
from benchmarks.incremental_work.works import (
    in_a_process,
    measured_flink,
    measured_large_table,
    measured_nexmark,
    measured_tpch,
)
from benchmarks.tpch_work.tpch_data import make_tpch_data
from benchmarks.tpch_work.tpch_tables import queries

RESULTS = Path(__file__).parent / "results"
WORKS = ("tpch", "nexmark", "large")


def main() -> None:
    """Run the benchmark, print the results and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--scale", type=float, default=1, help="scale factor of TPC-H")
    parser.add_argument("--queries", default="", help="queries of TPC-H (Q01) and Nexmark (q00); default: all")
    parser.add_argument("--pairs", type=int, default=3, help="refresh pairs of TPC-H")
    parser.add_argument("--warm-ups", type=int, default=1, help="first pairs that do not count")
    parser.add_argument("--data", type=Path, help="directory with TPC-H's tables of that scale factor")
    parser.add_argument("--rates", default="1000,5000", help="events of Nexmark a second")
    parser.add_argument("--seconds", type=float, default=60, help="for each of Nexmark's queries and rates")
    parser.add_argument("--flink", action="store_true", help="also keep Nexmark's answers up to date with Flink")
    parser.add_argument("--checkpoint-seconds", type=float, default=1, help="interval of Flink's checkpoints")
    parser.add_argument("--rows", type=int, default=60_000_000, help="rows of the large table")
    parser.add_argument("--refreshes", type=int, default=6, help="of the large table; the first does not count")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="heap of the driver")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "incremental_benchmark")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.flink and not NexmarkFlink.is_set_up():
        parser.error("Flink is not set up: run `make servers`")
    if unknown := set(arguments.works.split(",")) - set(WORKS):
        parser.error(f"unknown works {', '.join(sorted(unknown))}; choose from {', '.join(WORKS)}")
    known = [*queries(1), *nexmark_queries()]
    chosen = arguments.queries.split(",") if arguments.queries else known
    for name in set(chosen) - set(known):
        parser.error(f"no query {name}: {LEFT_OUT.get(name, 'it is not among ' + ', '.join(known))}")
    records: list[dict[str, Any]] = []
    for work in arguments.works.split(","):
        shutil.rmtree(arguments.directory, ignore_errors=True)
        arguments.directory.mkdir(parents=True)
        try:
            for found in measured(work, arguments, chosen):
                # At once: a later part that fails must not lose them.
                store(arguments.results, found)
                records += found
        finally:
            shutil.rmtree(arguments.directory, ignore_errors=True)
    print(markdown_of(records))


def store(results: Path, records: list[dict[str, Any]]) -> None:
    """Write the files, in which these records replace older ones of the same works and sizes."""
    path = results / "incremental.json"
    before = json.loads(path.read_text()) if path.exists() else []
    measured_now = {_size(each) for each in records}
    kept = [*(each for each in before if _size(each) not in measured_now), *records]
    results.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")
    (results / "incremental.svg").write_text(picture_of(kept))


def measured(work: str, arguments: argparse.Namespace, chosen: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Run the parts of a work, each in a process of its own, and yield their records."""
    directory = arguments.directory
    settings = SessionSettings(cores=arguments.cores, memory=arguments.memory, directory=directory)
    if work == "tpch":
        data = arguments.data
        if data is None:
            data = directory / "data"
            make_tpch_data(data, arguments.scale)
        tpch = TpchWork(
            scale=arguments.scale,
            names=[name for name in queries(1) if name in chosen],
            pairs=arguments.pairs,
            warm_ups=arguments.warm_ups,
            data=data,
            directory=directory,
        )
        yield in_a_process(measured_tpch, settings, tpch)
    elif work == "nexmark":
        names = [name for name in nexmark_queries() if name in chosen]
        rates = map(int, arguments.rates.split(","))
        nexmark = [NexmarkWork(names=names, rate=rate, seconds=arguments.seconds) for rate in rates]
        yield in_a_process(measured_nexmark, settings, nexmark)
        if arguments.flink:
            for work_of_one in (replace(each, names=[name]) for each in nexmark for name in names):
                of_flink = (directory, [work_of_one], arguments.cores, arguments.checkpoint_seconds)
                yield in_a_process(measured_flink, *of_flink)
    else:
        large = LargeTableWork(rows=arguments.rows, changed=min(1000, arguments.rows), refreshes=arguments.refreshes)
        yield in_a_process(measured_large_table, settings, large)


def _size(record: dict[str, Any]) -> tuple[object, ...]:
    rows = record["rows"] if record["work"] == "large table" else None
    return (record["work"], rows, *(record.get(name) for name in ("scale", "query", "rate")))


if __name__ == "__main__":
    main()
