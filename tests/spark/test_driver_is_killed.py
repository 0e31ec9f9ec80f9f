"""SIGKILL of the Spark driver between any two steps of a micro-batch's commit loses nothing and repeats nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from tests.support.deep_tests import thinned
from tests.support.spark_crash_points import CRASH_POINTS
from tests.support.spark_processes import warm_environment
from tests.support.spark_topics import committed_changes

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(1500)]

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.mark.parametrize("points", thinned([("snapshot created",), CRASH_POINTS]), ids=["one of them", "all"])
def test_every_crash_is_survived_and_every_change_is_seen_once(
    make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], tmp_path: Path, points: tuple[str, ...]
) -> None:
    """Crashes of one checkpoint: driver n crashes at the n-th point of batch n, the next one resumes."""
    table = make_table(log=True, bucket=2, lease__timeout="5 s")
    truth, changes = write_input(tmp_path / "input", batch_count=len(points) + 2)

    for batch_id, point in enumerate(points, start=1):
        crash = {"point": point, "batch": batch_id, "marker": str(tmp_path / f"crash-{batch_id}")}
        killed = run_driver(table, spark_conf, tmp_path, crash)
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
        assert Path(str(crash["marker"])).read_text() == point
    finished = run_driver(table, spark_conf, tmp_path, None)

    assert finished.returncode == 0, finished.stderr[-3000:]
    assert {row["id"]: row["v"] for row in table.to_arrow(columns=["id", "v"]).to_pylist()} == truth
    seen = committed_changes(table)
    assert Counter(seen) == Counter(changes)
    for key in truth:
        assert [each for each in seen if each[1] == key] == [each for each in changes if each[1] == key], "in order"


def write_input(directory: Path, batch_count: int) -> tuple[dict[int, str], list[tuple[str, int, str]]]:
    """Write one file per micro-batch; return the resulting table and every change as (op, id, v)."""
    directory.mkdir()
    truth: dict[int, str] = {}
    changes: list[tuple[str, int, str]] = []
    for batch in range(batch_count):
        lines = []
        for key in range(batch * 3, batch * 3 + 12):
            kind, op = ("+U", "u") if key in truth else ("+I", "c")
            if key in truth and key % 4 == 0:
                kind, op = "-D", "d"
            value = truth[key] if kind == "-D" else f"{key} of batch {batch}"
            if kind == "-D":
                del truth[key]
            else:
                truth[key] = value
            lines.append(json.dumps({"_row_kind": kind, "id": key, "v": value}))
            changes.append((op, key, value))
        path = directory / f"{batch:03}.json"
        path.write_text("\n".join(lines))
        # Spark reads files in the order of their modification times, which must be distinct.
        os.utime(path, (1_700_000_000 + batch,) * 2)
    return truth, changes


def run_driver(
    table: DynamicTable, spark_conf: dict[str, str], directory: Path, crash: dict[str, Any] | None
) -> subprocess.CompletedProcess[str]:
    job = {
        "warehouse": table.address.warehouse,
        "catalog_options": dict(table.address.options),
        "table": table.name,
        "conf": spark_conf,
        "input": str(directory / "input"),
        "checkpoint": str(directory / "checkpoint"),
        **({} if crash is None else {"crash": crash}),
    }
    with subprocess.Popen(
        [sys.executable, str(SUPPORT / "spark_crashing_stream.py"), json.dumps(job)],
        env=warm_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        _, stderr = driver.communicate(timeout=400)
    return subprocess.CompletedProcess(driver.args, driver.returncode, None, stderr)
