"""`make bench ONLY=cluster` at a tiny size, on a cluster with one worker; and the table of its records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster_work.cluster_report import table_of
from benchmarks.cluster_work.processor_time import processor_seconds

CHECKOUT = Path(__file__).parents[2]
WORKS = ("load", "upsert", "scan, uncompacted", "compaction", "scan, compacted")


@pytest.mark.deep  # a program for developers, minutes of Spark
@pytest.mark.spark
@pytest.mark.integration
def test_every_work_of_a_cluster_is_measured_and_every_answer_is_right(tmp_path: Path) -> None:
    sizes = ("--rows", "1500", "--workers", "1", "--upserts", "2", "--memory", "700m")
    places = ("--directory", str(tmp_path / "work"), "--results", str(tmp_path))

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cluster", *sizes, *places],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    records = json.loads((tmp_path / "cluster.json").read_text())
    assert [each["work"] for each in records] == ["load", "upsert", "upsert", *WORKS[2:]]
    assert all(each["seconds"] > 0 and each["driver_cpu"] > 0 for each in records)
    assert all(each["workers_cpu"][0] > 0 for each in records if each["work"] == "load")
    assert not (tmp_path / "work").exists()


def record(workers: int, seconds: float, *workers_cpu: float, work: str = "upsert") -> dict[str, Any]:
    each = {"rows": 10, "workers": workers, "work": work, "seconds": seconds}
    return {**each, "driver_cpu": 0.25, "workers_cpu": list(workers_cpu)}


def test_works_are_summed_and_lost_processor_times_give_no_speed() -> None:
    records = [record(1, 3, 4), record(1, 5, 4, work="load"), record(2, 2, 1, 3), record(2, 2, 0, 0, work="load")]

    head, *rows = table_of(records)

    cells = {(row[1], row[2]): dict(zip(head, row, strict=True)) for row in rows}
    assert cells["2", "load"]["speed by processor seconds"] == ""
    assert [cells["2", "all works"][name] for name in ("seconds", "speed")] == ["4.0", "2.00"]


def test_the_speed_is_that_of_one_worker_divided_by_that_of_several_and_runs_are_summed() -> None:
    records = [record(1, 3, 4), record(1, 3, 2), record(2, 2, 1, 3), record(2, 2, 1, 1)]

    head, alone, both = table_of(records)
    cells = dict(zip(head, both, strict=True))
    assert alone[:5] == ("10", "1", "upsert", "6.0", "1.00")
    assert (cells["seconds"], cells["speed"]) == ("4.0", "1.50")
    assert cells["processor seconds of the workers"] == "6.0"
    assert cells["of the busiest worker"] == "4.0"
    assert cells["of the driver"] == "0.5"
    assert cells["speed by processor seconds"] == "1.50"


def test_without_a_run_of_one_worker_there_is_no_speed() -> None:
    each = {"rows": 10, "workers": 2, "work": "load", "seconds": 1.0, "driver_cpu": 0.1, "workers_cpu": [1.0, 1.0]}

    head, line = table_of([each])

    assert dict(zip(head, line, strict=True))["speed"] == ""


def test_the_time_of_a_process_includes_its_ended_descendants() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\n"
    # A process of its own: others that this one has started may end meanwhile, and their time with them.
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}], check=True)\nprint()\ninput()\n"

    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds = processor_seconds(process.pid)
        process.communicate(b"\n")

    # The kernel counts whole hundredths, user and system time apart.
    assert process.returncode == 0
    assert seconds >= 0.25
