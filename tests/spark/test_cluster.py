"""The same on a standalone cluster of separate processes: a master, two workers, their executors."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

import pyspark

from tests.support.spark_processes import clean_environment

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The address of a master on this machine with two one-core workers."""
    home = Path(pyspark.__file__).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [
        ["org.apache.spark.deploy.master.Master", *common, "--port", str(port)],
        *[
            [
                "org.apache.spark.deploy.worker.Worker",
                *common,
                *("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"worker-{number}"), master),
            ]
            for number in range(2)
        ],
    ]
    environment = {
        **clean_environment(),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with ExitStack() as running:
        log = running.enter_context((tmp_path / "cluster.log").open("wb"))
        for command in commands:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command], env=environment, stdout=log, stderr=log
            )
            running.callback(process.wait, 20)
            running.callback(process.terminate)
            if "Master" in command[0]:
                wait_until_open(port)
        yield master


def wait_until_open(port: int, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")


def test_write_stream_compact_and_read_on_a_cluster(
    cluster: str, make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], tmp_path: Path
) -> None:
    table = make_table(log=True, bucket=2)
    job = {
        "master": cluster,
        "warehouse": table.address.warehouse,
        "catalog_options": dict(table.address.options),
        "table": table.name,
        "conf": {**spark_conf, "spark.executor.memory": "700m", "spark.executor.cores": "1"},
        "directory": str(tmp_path),
    }

    driver = subprocess.run(
        [sys.executable, str(SUPPORT / "spark_cluster_job.py"), json.dumps(job)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )

    assert driver.returncode == 0, driver.stderr[-4000:]
    said = json.loads(driver.stdout.splitlines()[-1])
    assert said["hosts"] == 2, "both workers' executors took part"
    assert said["files_before"] > said["files_after"] == 2
    assert said["rows"] == 1000
    assert {row["v"] for row in table.to_arrow(columns=["v"]).to_pylist()} == {"batch", "stream"}
