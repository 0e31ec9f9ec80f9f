"""The compose file's own commands and health checks, run without containers: its Spark, as far as hosts differ.

Those of Airflow are run against a real Airflow in ``tests/dags/test_airflow_end_to_end.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_process import LOOPBACK, free_port
from tests.support.patience import wait_until
from tests.support.spark_processes import clean_environment

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "docker" / "compose.yaml").read_text())
BESIDE_PYTHON = Path(sys.executable).parent

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Master and worker by the words of the compose file; what is another host or port there is replaced."""
    master = str(free_port())
    # Both have their pages at 8081, each in its own container; a worker is not told so, since that is its default.
    pages = {"spark-master": str(free_port()), "spark-worker": str(free_port())}

    def here(name: str, word: str) -> str:
        word = word.replace("7077", master).replace("8081", pages[name])
        return word.replace("spark-master", LOOPBACK).replace("/tmp/spark-work", str(tmp_path))  # noqa: S108

    environment = {**clean_environment(), "SPARK_LOCAL_IP": LOOPBACK, "SPARK_DAEMON_MEMORY": "256m"}
    environment["SPARK_WORKER_WEBUI_PORT"] = pages["spark-worker"]
    environment["PATH"] = f"{BESIDE_PYTHON}{os.pathsep}{os.environ['PATH']}"

    def healthy(name: str) -> bool:
        how, *check = COMPOSE["services"][name]["healthcheck"]["test"]
        assert how == "CMD"
        asked = subprocess.run([here(name, word) for word in check], env=environment, capture_output=True, check=False)
        return asked.returncode == 0

    with ExitStack() as running:

        def start(name: str) -> None:
            log = running.enter_context((tmp_path / f"{name}.log").open("wb"))
            words = [here(name, word) for word in COMPOSE["services"][name]["command"]]
            process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
            running.callback(process.wait, 20)
            running.callback(process.terminate)

        yield {"start": start, "healthy": healthy, "log": lambda name: (tmp_path / f"{name}.log").read_text()}


def test_spark_comes_up_by_the_compose_files_commands_and_its_health_checks_tell(spark: dict[str, Any]) -> None:
    assert not spark["healthy"]("spark-master")

    spark["start"]("spark-master")
    wait_until(lambda: spark["healthy"]("spark-master"))
    spark["start"]("spark-worker")

    wait_until(lambda: spark["healthy"]("spark-worker"))
    wait_until(lambda: "Successfully registered with master" in spark["log"]("spark-worker"))
