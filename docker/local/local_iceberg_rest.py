"""Iceberg REST catalog on this machine without Docker: that of Iceberg's own tests, loopback only.

    with LocalIcebergRest(folder) as catalog:
        open_catalog(warehouse, {"iceberg.rest.uri": catalog.uri})

It stores its entries in a SQLite file, and serves files of local disks. The jars come from `make servers`. Standard
library only.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from java_runtime import find_java
from local_process import LOOPBACK, LocalProcess, LocalServer, free_port, is_answered

if TYPE_CHECKING:
    from typing import Self

__all__ = ["JARS", "IcebergRestNotSetUpError", "LocalIcebergRest", "LocalIcebergRestError"]

JARS = Path(__file__).resolve().parents[2] / ".local" / "iceberg_rest" / "lib"
PROGRAM = Path(__file__).resolve().parent / "iceberg_rest" / "LocalIcebergRest.java"
JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class LocalIcebergRestError(RuntimeError):
    """The catalog did not start; the message ends with its output."""


class IcebergRestNotSetUpError(LocalIcebergRestError):
    """The jars are missing; `make servers` fetches them."""


class LocalIcebergRest(LocalServer):
    """Catalog that stores its entries in ``home``. Not thread-safe."""

    def __init__(self, home: str | os.PathLike[str], *, jars: Path = JARS) -> None:
        self.home = Path(home).resolve()
        self._jars = jars
        self._process = LocalProcess(self.home, f"-Ddynamic-tables.home={self.home}", name="iceberg_rest")
        self._port: int | None = None

    @property
    def uri(self) -> str:
        """Address for clients of Iceberg's REST protocol."""
        if self._port is None:
            msg = f"The Iceberg REST catalog in {self.home} has not been started, so it has no address."
            raise LocalIcebergRestError(msg)
        return f"http://{LOOPBACK}:{self._port}"

    def start(self, *, timeout: float = 120) -> Self:
        """Start the catalog, on its previous port if it had one, and return once it answers."""
        java = find_java()
        if not list(self._jars.glob("iceberg-core-*.jar")):
            msg = f"The Iceberg REST catalog is not installed in {self._jars}. Run `make servers`."
            raise IcebergRestNotSetUpError(msg)
        self.home.mkdir(parents=True, exist_ok=True)
        self._port = self._port or free_port()
        # It writes metadata of tables at relative paths below its working directory.
        home = (f"-Ddynamic-tables.home={self.home}", f"-Duser.dir={self.home}")
        self._process.run_until(
            lambda: is_answered(f"{self.uri}/v1/config"),
            (java, *JVM, *home, "-cp", f"{self._jars}/*", PROGRAM, self.home, self._port),
            timeout=timeout,
            what="The Iceberg REST catalog",
            error=LocalIcebergRestError,
        )
        return self

    def stop(self) -> None:
        """Stop the catalog; its entries remain in the folder. Does nothing if it is down."""
        self._process.end(signal.SIGTERM, 10)
