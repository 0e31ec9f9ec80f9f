"""Hive metastore on this machine without Docker or Hadoop, loopback only.

    with LocalMetastore(folder) as metastore:
        open_catalog(folder, {"metastore": "hive", "uri": metastore.uri})

Its classes are in pyspark's jars, which `make setup` has fetched. Standard library only.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from java_runtime import find_java
from local_process import LOOPBACK, LocalProcess, LocalServer, free_port

if TYPE_CHECKING:
    from typing import Self

__all__ = ["LocalMetastore", "LocalMetastoreError", "MetastoreNotSetUpError", "find_jars"]

VENV = Path(__file__).resolve().parents[2] / ".local" / "venv"
PROGRAM = Path(__file__).resolve().parent / "metastore" / "LocalMetastore.java"
OPENED = ("java.lang", "java.util", "java.net", "java.io", "java.nio", "java.util.concurrent", "java.lang.reflect")
JVM = (
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
)


class LocalMetastoreError(RuntimeError):
    """The metastore did not start; the message ends with its output."""


class MetastoreNotSetUpError(LocalMetastoreError):
    """The jars are missing; `make setup` fetches them."""


class LocalMetastore(LocalServer):
    """Metastore that stores its tables in ``home``. Not thread-safe."""

    def __init__(self, home: str | os.PathLike[str], *, jars: Path | None = None) -> None:
        self.home = Path(home).resolve()
        self._jars = jars
        self._process = LocalProcess(self.home, f"-Ddynamic-tables.home={self.home}", name="metastore")
        self._port: int | None = None

    @property
    def uri(self) -> str:
        """Address for ``open_catalog`` and Hive clients."""
        if self._port is None:
            msg = f"The metastore in {self.home} has not been started, so it has no address."
            raise LocalMetastoreError(msg)
        return f"thrift://{LOOPBACK}:{self._port}"

    def start(self, *, timeout: float = 120) -> Self:
        """Start the metastore, on its previous port if any, and return once it answers."""
        java = find_java()
        jars = self._jars or find_jars()
        if jars is None or not list(jars.glob("hive-metastore-*.jar")):
            msg = f"Hive's metastore has no jars in {jars or VENV}. Run `make setup`."
            raise MetastoreNotSetUpError(msg)
        self.home.mkdir(parents=True, exist_ok=True)
        self._port = self._port or free_port()
        settings = {
            "dynamic-tables.home": str(self.home),
            "derby.stream.error.file": str(self.home / "derby.log"),
            "java.io.tmpdir": str(self.home),
        }
        options = [f"-D{name}={value}" for name, value in settings.items()]
        self._process.run_until(
            self._answers,
            (java, *JVM, *options, "-cp", f"{jars}/*", PROGRAM, self.home, self._port),
            timeout=timeout,
            what="The metastore",
            error=LocalMetastoreError,
        )
        return self

    def stop(self) -> None:
        """Stop the metastore; its tables remain in the folder. Does nothing if it is down."""
        self._process.end(signal.SIGTERM, 10)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self._port or 0), timeout=1):
                return True
        except OSError:
            return False


def find_jars() -> Path | None:
    """Return the folder of pyspark's jars; None before `make setup`."""
    return next(VENV.glob("lib/python*/site-packages/pyspark/jars"), None)
