"""Standalone Spark cluster on this machine: a master and single-core workers, each in its own process."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from local_process import LOOPBACK, free_port
from tests.support.spark_processes import QUICK, clean_environment
from tests.support.waiting import wait_until

__all__ = ["QUICK_EXECUTORS", "spark_cluster"]

QUICK_EXECUTORS = {"spark.executor.extraJavaOptions": QUICK.get("SPARK_SUBMIT_OPTS", "")}
"""Driver settings with which its executors start as quickly as the driver."""


@contextmanager
def spark_cluster(directory: Path, *, workers: int, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the master's address; executors write below ``directory``, to ``worker-0/app-...`` and so on.

    ``environment`` is that of the workers and their executors (default: ``clean_environment()``).
    """
    import pyspark

    home, port = Path(pyspark.__file__).parent, free_port()
    master = f"spark://{LOOPBACK}:{port}"
    common = ["--host", LOOPBACK, "--webui-port", "0"]
    commands = [
        ["org.apache.spark.deploy.master.Master", *common, "--port", str(port)],
        *[
            [
                "org.apache.spark.deploy.worker.Worker",
                *common,
                *("--cores", "1", "--memory", "1g", "--work-dir", str(directory / f"worker-{number}"), master),
            ]
            for number in range(workers)
        ],
    ]
    variables = {
        **(clean_environment() if environment is None else environment),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        # Master and workers also live only for seconds.
        "SPARK_DAEMON_JAVA_OPTS": QUICK.get("SPARK_SUBMIT_OPTS", ""),
    }
    with ExitStack() as running:
        log = running.enter_context((directory / "cluster.log").open("wb"))
        for command in commands:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command], env=variables, stdout=log, stderr=log
            )
            running.callback(process.wait, 120)
            running.callback(process.terminate)
            if "Master" in command[0]:
                wait_until(lambda: _is_open(port))
        yield master


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
