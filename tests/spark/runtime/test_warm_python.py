"""Spark's Python processes are forked from one that has imported, and look like ones that Spark has started."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

pytest.importorskip("pyspark")

from storage_lib.spark.runtime import warm_python as warm_python_module
from storage_lib.spark.runtime.warm_python import FORKED, can_fork, warm_python
from tests.support.spark_processes import clean_environment
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not can_fork(), reason="the server needs Linux")

DAEMON, RUNNER = FORKED[:2]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [warm_python(), *arguments], env=variables, capture_output=True, text=True, timeout=120, check=False
    )


def the_server() -> psutil.Process:
    def found() -> list[psutil.Process]:
        children = psutil.Process().children()
        return [each for each in children if "storage_lib.spark.runtime.warm_python" in each.cmdline()]

    # Linux shows the command line of a process only some time after it was started.
    wait_until(found)
    [server] = found()
    return server


def test_a_process_has_the_environment_the_output_and_the_status_of_its_launcher() -> None:
    ended = run("-m", RUNNER, PYTHON_WORKER_FACTORY_PORT="no port")

    assert ended.returncode == 1
    assert "ValueError: invalid literal for int() with base 10: 'no port'" in ended.stderr


def test_a_daemon_gets_its_arguments_and_ends_with_its_input() -> None:
    daemon = [warm_python(), "-m", DAEMON, "pyspark.worker"]

    ended = subprocess.run(daemon, input=b"", capture_output=True, timeout=120, check=False)

    assert ended.returncode == 1, "as that of an ordinary daemon"
    assert len(ended.stdout) == 4, "the port on which it listens"


def test_a_daemon_ends_when_its_launcher_is_ended() -> None:
    launcher = warm_python()
    # Those of a session of other tests.
    others = the_server().children()
    with subprocess.Popen(
        [launcher, "-m", DAEMON, "pyspark.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as daemon:
        assert daemon.stdout is not None
        assert len(daemon.stdout.read(4)) == 4
        [forked] = set(the_server().children()) - set(others)

        daemon.kill()
        wait_until(lambda: not forked.is_running())


def test_another_command_runs_in_an_ordinary_python() -> None:
    ended = run("-c", "import sys; print(sys.executable, 'pyspark' in sys.modules)")

    assert ended.stdout.split() == [sys.executable, "False"]


def test_two_processes_share_nothing_but_imports() -> None:
    first = run("-m", RUNNER, PYTHON_WORKER_FACTORY_PORT="one")
    second = run("-m", RUNNER, PYTHON_WORKER_FACTORY_PORT="two")

    assert ("'one'" in first.stderr, "'two'" in second.stderr) == (True, True)


@pytest.mark.filterwarnings("error")
def test_a_fork_prints_no_warning_of_the_threads_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 and later warn if the process has threads, and show a warning of a main module."""

    def fork() -> int:
        text = "This process (pid=7) is multi-threaded, use of fork() may lead to deadlocks in the child."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return 7

    monkeypatch.setattr("os.fork", fork)

    assert warm_python_module._fork() == 7


@contextmanager
def started_by_a_jvm() -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """Start the process of a streaming source as Spark does; yield its launcher and the connection that it makes."""
    with socket.create_server(("127.0.0.1", 0)) as jvm:
        jvm.settimeout(60)
        port = str(jvm.getsockname()[1])
        variables = {"PYTHON_WORKER_FACTORY_PORT": port, "PYTHON_WORKER_FACTORY_SECRET": "the secret"}
        with subprocess.Popen(
            [warm_python(), "-m", RUNNER], env=variables, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as launcher:
            connection, _ = jvm.accept()
            with connection:
                connection.settimeout(60)
                length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
                assert connection.recv(length, socket.MSG_WAITALL) == b"the secret"
                yield launcher, connection


@pytest.fixture
def held_server() -> Iterator[psutil.Process]:
    """A server that does not get the processor, as on a busy machine."""
    warm_python()
    server = the_server()
    server.send_signal(signal.SIGSTOP)
    yield server
    server.send_signal(signal.SIGCONT)


def test_a_streaming_source_connects_before_there_is_time_to_start_its_process(held_server: psutil.Process) -> None:
    with started_by_a_jvm() as (launcher, connection):
        connection.sendall(b"\0\0\0\2ok")
        held_server.send_signal(signal.SIGCONT)
        pid = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
        # What the process expects next is the version of Python.
        connection.sendall(b"\0\0\0\x032.7")
        connection.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: connection.recv(65536), b""))

        # Our own child, as opposed to the launcher, which only waits.
        assert pid != launcher.pid
        assert b"PYTHON_VERSION_MISMATCH" in said
        assert launcher.wait(60) == 255


@pytest.mark.usefixtures("held_server")
def test_a_streaming_source_ends_if_the_jvm_refuses_it() -> None:
    with started_by_a_jvm() as (launcher, connection):
        connection.sendall(b"\0\0\0\3err")

        assert launcher.stderr is not None
        assert "does not accept the secret" in launcher.stderr.read()
        assert launcher.wait(60) == 1


OWNER = """
import psutil, subprocess, sys
from storage_lib.spark.runtime.warm_python import warm_python
python = warm_python()
if sys.argv[1] == "killed":
    # Its only child, whose command line may not be shown yet.
    [server] = psutil.Process().children()
    server.kill()
    ended = subprocess.run([python, "-m", "pyspark.daemon", "x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    print(len(ended.stdout))
print(python, flush=True)
if sys.argv[1] == "waits":
    sys.stdin.read()
"""


def test_a_daemon_is_an_ordinary_one_once_the_server_has_been_killed() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", OWNER, "killed"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    port, launcher = ended.stdout.split()
    assert port == "4"
    assert not Path(launcher).exists()


def test_the_server_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, "waits"],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        launcher = Path(owner.stdout.readline().strip())
        assert launcher.stat().st_mode & 0o777 == 0o700
        owner.kill()

    wait_until(lambda: not launcher.parent.exists())


def test_a_session_forks_its_workers_and_restores_the_environment() -> None:
    program = """
import json, os, sys
from storage_lib.spark import session
spark = session(master="local[1]", conf={"spark.ui.enabled": "false"})
of_worker = lambda _: [sys.orig_argv, os.environ.get("PYTHONHASHSEED")]
worker = spark.sparkContext.parallelize([1], 1).map(of_worker).first()
launcher = spark.sparkContext.pythonExec
spark.stop()
print(json.dumps([launcher, worker, os.environ["PYSPARK_PYTHON"] == sys.executable]))
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=240, check=True)

    launcher, (arguments, seed), is_restored = json.loads(ended.stdout.splitlines()[-1])
    assert Path(launcher).parent.name.startswith("warm-python-")
    assert "storage_lib.spark.runtime.warm_python" in arguments
    assert (seed, is_restored) == ("0", True)
    assert not Path(launcher).exists()
