"""Standalone Spark cluster on this machine: a master and single-core workers, each in its own process."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from local_process import LOOPBACK, free_port
from tests.support.spark_processes import QUICK, clean_environment
from tests.support.waiting import wait_until

__all__ = ["QUICK_EXECUTORS", "RunningCluster", "spark_cluster"]

QUICK_EXECUTORS = {"spark.executor.extraJavaOptions": QUICK.get("SPARK_SUBMIT_OPTS", "")}
"""Driver settings with which its executors start as quickly as the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCluster:
    """Address of a master, and the process ids of its workers, whose descendants are the executors."""

    master: str
    workers: tuple[int, ...]


@contextmanager
def spark_cluster(
    directory: Path,
    *,
    workers: int,
    environment: Mapping[str, str] | None = None,
    worker_memory: str = "1g",
    is_pinned: bool = False,
) -> Iterator[RunningCluster]:
    """Start a cluster and stop it after the body; executors write to ``worker-0/app-...`` and so on in ``directory``.

    ``environment`` is that of the workers and their executors (default: ``clean_environment()``). ``is_pinned``: each
    worker, with its executors, uses one processor, which no other worker uses.
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
                *("--cores", "1", "--memory", worker_memory, "--work-dir", str(directory / f"worker-{number}"), master),
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
    processors = sorted(os.sched_getaffinity(0)) if is_pinned else []
    if is_pinned and workers > len(processors):
        message = f"{workers} workers with a processor each, but only {len(processors)} processors"
        raise ValueError(message)
    with ExitStack() as running:
        log = running.enter_context((directory / "cluster.log").open("wb"))
        started = []
        for number, command in enumerate(commands):
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command], env=variables, stdout=log, stderr=log
            )
            running.callback(process.wait, 120)
            running.callback(process.terminate)
            started.append(process.pid)
            if number == 0:
                wait_until(lambda: _is_open(port))
            elif is_pinned:
                # Before it starts Java, whose threads and children inherit this.
                os.sched_setaffinity(process.pid, {processors[number - 1]})
        yield RunningCluster(master=master, workers=tuple(started[1:]))


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
