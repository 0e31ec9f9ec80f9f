"""Spark's own processes are forked from a Python that has imported, and look like ones that Spark has started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.support.warm_python import STARTED, warm_python


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_python(tmp_path_factory.mktemp("warm")) as launcher:
        yield launcher


def run(python: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, *arguments], env=variables, capture_output=True, text=True, timeout=60, check=False)


def test_a_process_has_the_environment_the_output_and_the_status_of_its_launcher(python: Path) -> None:
    ended = run(python, "-m", STARTED[1], PYTHON_WORKER_FACTORY_PORT="no port")

    assert ended.returncode == 1
    assert "ValueError: invalid literal for int() with base 10: 'no port'" in ended.stderr


def test_a_daemon_gets_its_arguments_and_ends_with_its_input(python: Path) -> None:
    daemon = [str(python), "-m", STARTED[0], "pyspark.worker"]

    ended = subprocess.run(daemon, input=b"", capture_output=True, timeout=60, check=False)

    assert ended.returncode == 1, "as that of an ordinary daemon"
    assert len(ended.stdout) == 4, "the port on which it listens"


def test_another_command_runs_in_an_ordinary_python(python: Path) -> None:
    ended = run(python, "-c", "import sys; print(sys.executable, 'pyspark' in sys.modules)")

    assert ended.stdout.split() == [sys.executable, "False"]


def test_two_processes_share_nothing_but_imports(python: Path) -> None:
    first = run(python, "-m", STARTED[1], PYTHON_WORKER_FACTORY_PORT="one")
    second = run(python, "-m", STARTED[1], PYTHON_WORKER_FACTORY_PORT="two")

    assert ("'one'" in first.stderr, "'two'" in second.stderr) == (True, True)
