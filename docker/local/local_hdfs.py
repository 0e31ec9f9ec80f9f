"""HDFS on this machine without Docker: a NameNode and a DataNode in one JVM, loopback only.

    with LocalHdfs(folder) as hdfs:
        open_catalog(f"{hdfs.url}/warehouse")

The jars, Hadoop's own minicluster, come from `make servers`. Standard library only.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from java_runtime import find_java
from local_process import LOOPBACK, LocalProcess, LocalServer, free_port

if TYPE_CHECKING:
    from typing import Self

__all__ = ["HdfsNotSetUpError", "LocalHdfs", "LocalHdfsError"]

JARS = Path(__file__).resolve().parents[2] / ".local" / "hdfs" / "lib"
JVM = (
    "-Xms128m",
    "-Xmx384m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
SETTINGS = {
    "dfs.namenode.http-bind-host": LOOPBACK,
    "dfs.namenode.rpc-bind-host": LOOPBACK,
    "dfs.permissions.enabled": "false",
    "dfs.replication": "1",
}


class LocalHdfsError(RuntimeError):
    """The cluster did not start; the message ends with its output."""


class HdfsNotSetUpError(LocalHdfsError):
    """The jars are missing; `make servers` fetches them."""


class LocalHdfs(LocalServer):
    """HDFS cluster in ``home``, formatted at each start; ends with the process that started it."""

    def __init__(self, home: str | os.PathLike[str], *, jars: Path = JARS) -> None:
        self.home = Path(home).resolve()
        self._jars = jars
        self._data = self.home / "data"
        self._process = LocalProcess(self.home, str(self._data), name="hdfs")
        self._port: int | None = None

    @property
    def port(self) -> int:
        """Port of the NameNode."""
        if self._port is None:
            msg = f"The HDFS in {self.home} has not been started and has no address."
            raise LocalHdfsError(msg)
        return self._port

    @property
    def url(self) -> str:
        """URL of the file system's root."""
        return f"hdfs://{LOOPBACK}:{self.port}"

    def start(self, *, timeout: float = 120) -> Self:
        """Start an empty cluster and return once it accepts files."""
        java = find_java()
        if not any(self._jars.glob("hadoop-client-minicluster-*.jar")):
            msg = f"There are no Hadoop jars in {self._jars}. Run `make servers`."
            raise HdfsNotSetUpError(msg)
        self._data.mkdir(parents=True, exist_ok=True)
        self._port = free_port()
        settings = {**SETTINGS, "hdfs.minidfs.basedir": str(self._data)}
        details = self.home / "details.json"
        command = (
            java,
            *JVM,
            "-cp",
            f"{self._jars}/*",
            "org.apache.hadoop.test.MiniDFSClusterManager",
            "-format",
            *("-datanodes", "1"),
            *("-nnport", self._port),
            *("-httpport", free_port(self._port)),
            *("-writeDetails", details),
            *(word for name, value in settings.items() for word in ("-D", f"{name}={value}")),
        )
        # The cluster writes this file once the DataNode has joined.
        self._process.run_until(details.exists, command, timeout=timeout, what="HDFS", error=LocalHdfsError)
        return self

    def stop(self) -> None:
        """Kill the cluster, since its data is not needed any more. Does nothing if it is down."""
        self._process.end(signal.SIGKILL, 20)
