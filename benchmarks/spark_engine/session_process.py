"""The benchmark's handle on one worker: starts its Spark session, sends orders, and observes its memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from benchmarks.spark_engine.environments import ENVIRONMENTS
from benchmarks.spark_engine.memory_peak import sampled_memory

_CHECKOUT = Path(__file__).resolve().parents[2]
_LOG_LINES = 60


class WorkerFailedError(Exception):
    """A worker has ended; the message has the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of all sessions: cores of the local master, and the heap of each driver, for example ``3g``."""

    cores: int = 2
    memory: str = "3g"

    def as_json(self, system: str, scratch: Path) -> str:
        """Return the worker's argument."""
        conf = {
            "spark.driver.memory": self.memory,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": str(2 * self.cores),
            "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        }
        jars = ",".join(str(jar) for jar in ENVIRONMENTS[system].jars) if system in ENVIRONMENTS else ""
        return json.dumps({"conf": conf, "master": f"local[{self.cores}]", "jars": jars})


@dataclass(kw_only=True)
class SessionProcess:
    """A running session of ``system``.

    ``started_seconds`` counts from the process's start to the first answer, ``start_peak_bytes`` is the memory of that
    time, ``spark`` the release of Spark.
    """

    system: str
    started_seconds: float = 0.0
    start_peak_bytes: int = 0
    spark: str = ""
    process: subprocess.Popen[str] = field(repr=False)
    orders: IO[str] = field(repr=False)
    answers: IO[str] = field(repr=False)
    log: Path = field(repr=False)

    def do(self, **order: Any) -> dict[str, Any]:
        """Run one order; return the worker's answer and ``peak_bytes``. Raises ``WorkerFailedError``."""
        with sampled_memory(self.process.pid) as peak:
            try:
                self.orders.write(json.dumps(order) + "\n")
                self.orders.flush()
            except BrokenPipeError:
                raise self._failure(order["do"]) from None
            answer = self.next_answer(order["do"])
        return {**answer, "peak_bytes": peak.bytes}

    def next_answer(self, order: str) -> dict[str, Any]:
        """Wait for the next line of the worker."""
        line = self.answers.readline()
        if not line:
            raise self._failure(order)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _failure(self, order: str) -> WorkerFailedError:
        self.process.wait()
        end = "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
        return WorkerFailedError(f"{self.system}: {order} failed; the worker's log ends with:\n{end}")


@contextmanager
def session_process(system: str, scratch: Path, settings: Settings) -> Iterator[SessionProcess]:
    """Start a session with an empty directory for its tables, and end it after the body."""
    directory = scratch / system.replace(" ", "_")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    log_path = scratch / f"{directory.name}.log"
    python = ENVIRONMENTS[system].python if system in ENVIRONMENTS else Path(sys.executable)
    words = [str(python), "-m", "benchmarks.spark_engine.worker", system, str(directory)]
    # A SPARK_HOME of the user would start another Spark than the one to measure.
    variables = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    variables |= {"PYSPARK_PYTHON": str(python), "PYTHONPATH": str(_CHECKOUT)}
    begin = time.perf_counter()
    with log_path.open("w") as log:
        process = subprocess.Popen(
            [*words, settings.as_json(system, directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=variables,
            cwd=directory,
        )
    orders, answers = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
    session = SessionProcess(system=system, process=process, orders=orders, answers=answers, log=log_path)
    try:
        with sampled_memory(process.pid) as peak:
            session.spark = session.next_answer("the start of the session")["spark"]
        session.started_seconds = time.perf_counter() - begin
        session.start_peak_bytes = peak.bytes
        yield session
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Close the worker's input, at which it ends, and wait for it; kill it if it does not end."""
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
