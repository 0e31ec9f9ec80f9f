"""The same work through Spark by this library, Paimon, Iceberg, Delta and plain Parquet, in one run.

    python -m benchmarks.spark [--rows 3000000] [--rounds 3] [--systems ours,delta] [--cores 2] [--memory 3g]

Each system has a session of its own, in the newest Spark that it supports; ours and plain Parquet share one release.
The sessions live together, and each work runs in all of them, one after another; with ``--apart`` each system does all
of its works alone, for example for 30 million rows.
Works: session start; load of ``--rows`` rows, by a cold and by a warm session; ten upserts of 200,000 rows; six
aggregates over all columns, a filter that keeps 0.1 % of the rows, the sum of one column, ``count(*)`` and the look-up
of a key, before and after a compaction. Every answer is compared with the expected one; a wrong one ends the run.
Prints a table, and writes ``benchmarks/results/spark.json`` and ``spark.svg``, which keep the figures of other numbers
of rows. The environments of the peers are below ``.local/spark_peers``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.spark_engine.engine_data import EngineData
from benchmarks.spark_engine.engine_round import EngineRound, say
from benchmarks.spark_engine.environments import ENVIRONMENTS
from benchmarks.spark_engine.formats.catalogue import NAMES
from benchmarks.spark_engine.measurements import Measurements
from benchmarks.spark_engine.report import markdown_of, picture_of
from benchmarks.spark_engine.session_process import Settings

RESULTS = Path(__file__).parent / "results"
UPSERT_ROWS_MAX = 200_000


def main() -> None:
    """Run the benchmark, print the results and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--upserts", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="sessions of each system, one after another")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions of each query in a session")
    parser.add_argument("--apart", action="store_true", help="one session at a time, where memory is short")
    parser.add_argument("--systems", default=",".join(NAMES))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="3g", help="heap of each driver; the sessions of a round live together")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "spark_benchmark")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    systems = arguments.systems.split(",")
    if unknown := set(systems) - set(NAMES):
        parser.error(f"unknown systems {', '.join(sorted(unknown))}; choose from {', '.join(NAMES)}")
    for system in systems:
        if system in ENVIRONMENTS:
            ENVIRONMENTS[system].set_up()
    try:
        records = measured(arguments, systems)
    finally:
        shutil.rmtree(arguments.directory, ignore_errors=True)
    path = arguments.results / "spark.json"
    before = json.loads(path.read_text()) if path.exists() else []
    kept = [*(each for each in before if each["rows"] != arguments.rows), *records]
    kept.sort(key=lambda each: int(each["rows"]))
    arguments.results.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")
    (arguments.results / "spark.svg").write_text(picture_of(kept))
    print(markdown_of(records))


def measured(arguments: argparse.Namespace, systems: list[str]) -> list[dict[str, Any]]:
    """Return the records of all rounds."""
    shutil.rmtree(arguments.directory, ignore_errors=True)
    data = EngineData(
        directory=arguments.directory / "data",
        rows=arguments.rows,
        upserts=arguments.upserts,
        upsert_rows=max(1, min(UPSERT_ROWS_MAX, arguments.rows // 15)),
    )
    say(f"making {data.rows:,} rows and {data.upserts} upserts of {data.upsert_rows:,}")
    expected = data.make()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    measurements = Measurements(rows=data.rows, machine=machine)
    for number in range(arguments.rounds):
        say(f"round {number + 1} of {arguments.rounds}, load of the machine {os.getloadavg()[0]:.1f}")
        for together in [[system] for system in systems] if arguments.apart else [systems]:
            EngineRound(
                systems=together,
                data=data,
                expected=expected,
                measurements=measurements,
                scratch=arguments.directory,
                settings=Settings(cores=arguments.cores, memory=arguments.memory),
                repeats=arguments.repeats,
            ).run()
    return measurements.records()


if __name__ == "__main__":
    main()
