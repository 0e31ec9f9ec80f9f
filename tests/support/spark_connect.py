"""Spark Connect server on this machine, in a process of its own."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_process import LOOPBACK, free_port
from tests.support.spark_processes import warm_environment
from tests.support.waiting import wait_until

__all__ = ["connect_server"]

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Yield the address (``SPARK_REMOTE``) of a server with two cores, which writes its log into ``directory``."""
    import pyspark

    home, port = Path(pyspark.__file__).parent, free_port()
    settings = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.warehouse.dir": str(directory / "spark-warehouse"),
        "spark.ui.enabled": "false",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-submit"), "--class", _SERVER, "--master", "local[2]", *words, "spark-internal"],
            cwd=directory,
            env={**warm_environment(), "SPARK_HOME": str(home)},
            stdout=log,
            stderr=log,
        )
        try:
            wait_until(lambda: process.poll() is not None or _is_open(port))
            assert process.poll() is None, (directory / "server.log").read_text()[-4000:]
            yield f"sc://{LOOPBACK}:{port}"
        finally:
            process.terminate()
            process.wait(120)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
