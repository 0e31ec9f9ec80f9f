"""A shared server is started once, serves every process, and ends when the last user has ended, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_kafka import JARS, LocalKafka
from tests.support.shared_server import shared_server, unique_name
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.integration]
USER = """
import sys
from local_kafka import LocalKafka
from tests.support.shared_server import shared_server

with shared_server(LocalKafka(sys.argv[1], outlives_us=True)) as broker:
    print(broker.pid, broker.port, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    yield tmp_path / "kafka"
    LocalKafka(tmp_path / "kafka").kill()


def start_user(home: Path) -> subprocess.Popen[str]:
    """Start a process that uses the server until its input ends."""
    words = [sys.executable, "-c", USER, str(home)]
    path = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=path)


def test_processes_share_one_server_which_ends_after_the_last_is_killed(home: Path) -> None:
    with start_user(home) as first, start_user(home) as second:
        assert first.stdout is not None
        assert second.stdout is not None
        told = first.stdout.readline()
        assert second.stdout.readline() == told
        first.send_signal(signal.SIGKILL)
        assert first.wait() == -signal.SIGKILL
        pid, port = map(int, told.split())
        assert LocalKafka(home).pid == pid

        with shared_server(LocalKafka(home, outlives_us=True)) as third:
            second.send_signal(signal.SIGKILL)
            assert second.wait() == -signal.SIGKILL
            assert (third.pid, third.port) == (pid, port)

    wait_until(lambda: LocalKafka(home).pid is None)


def test_names_of_two_tests_differ_even_if_pytest_shortens_them_to_the_same() -> None:
    assert len({unique_name(Path(f"popen-gw{worker}/test_a_long_name0")) for worker in range(2)}) == 2
