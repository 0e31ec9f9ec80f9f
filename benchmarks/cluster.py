"""The same work on a standalone Spark cluster with one worker, and with two.

    python -m benchmarks.cluster [--rows 100000000] [--workers 1,2] [--upserts 3] [--memory 1500m]

Each worker has one core, and a processor of the machine that no other worker uses; the driver has no processor of its
own. Works: load of ``--rows`` rows into a table with a key and ``--buckets`` buckets, upserts of one row in twenty, a
scan of all columns, a full compaction, and the scan again. Executors generate the rows, and every answer of a scan is
compared with the expected one; a wrong one ends the run.

Prints a table, and writes ``benchmarks/results/cluster.json``, which keeps the figures of other numbers of rows. Where
other programs use the processors, compare the processor seconds of the busiest worker instead of the seconds: the works
can't be faster than those. The time of a Python process that Spark has killed is sometimes missing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docker" / "local"))

from benchmarks.cluster_work.cluster_report import markdown_of
from local_process import LOOPBACK
from tests.support.spark_cluster import spark_cluster
from tests.support.spark_processes import REPOSITORY, clean_environment

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the benchmark, print the results and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--workers", default="1,2", help="numbers of workers, one cluster after the other")
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--upserts", type=int, default=3)
    parser.add_argument("--memory", default="1500m", help="heap of each executor")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "cluster_benchmark")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    records = []
    for workers in map(int, arguments.workers.split(",")):
        print(f"{workers} workers, load of the machine {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        records += measured(arguments, workers)
    path = arguments.results / "cluster.json"
    before = json.loads(path.read_text()) if path.exists() else []
    kept = [*(each for each in before if each["rows"] != arguments.rows), *records]
    kept.sort(key=lambda each: int(each["rows"]))
    arguments.results.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(markdown_of(records))


def measured(arguments: argparse.Namespace, workers: int) -> list[dict[str, Any]]:
    """Run all works on a cluster of its own, and return their records."""
    directory = arguments.directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    conf = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "1g",
        "spark.executor.memory": arguments.memory,
        "spark.executor.cores": "1",
        # The first job waits for all executors.
        "spark.cores.max": str(workers),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        # The workers' machines have this library, so that their daemon can import it before the job.
        "spark.python.daemon.module": "storage_lib.spark.runtime.warm_daemon",
        "spark.local.dir": str(directory / "scratch"),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    try:
        # A worker offers more memory than the heap, because Spark adds memory for other uses.
        with spark_cluster(directory, workers=workers, worker_memory="64g", is_pinned=True) as cluster:
            settings = {
                "master": cluster.master,
                "worker_pids": cluster.workers,
                "conf": conf,
                "warehouse": str(directory / "warehouse"),
                "rows": arguments.rows,
                "buckets": arguments.buckets,
                "upserts": arguments.upserts,
            }
            command = [sys.executable, "-m", "benchmarks.cluster_work.cluster_driver", json.dumps(settings)]
            done = subprocess.run(
                command, cwd=REPOSITORY, env=clean_environment(), stdout=subprocess.PIPE, text=True, check=True
            )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [{"rows": arguments.rows, "workers": workers, **each} for each in records]


if __name__ == "__main__":
    main()
