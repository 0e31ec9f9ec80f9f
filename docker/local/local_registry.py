"""Schema registry on this machine without Docker: Apicurio, in memory, loopback only.

    with LocalRegistry(folder) as registry:
        open_catalog(folder, {"log.kafka.bootstrap.servers": ..., "log.schema-registry.url": registry.url})

It serves Confluent's API. The program comes from `make servers`. Standard library only.
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

__all__ = ["LocalRegistry", "LocalRegistryError", "RegistryNotSetUpError"]

APP = Path(__file__).resolve().parents[2] / ".local" / "registry" / "app"
JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class LocalRegistryError(RuntimeError):
    """The registry did not start; the message ends with its output."""


class RegistryNotSetUpError(LocalRegistryError):
    """The program is missing; `make servers` fetches it."""


class LocalRegistry(LocalServer):
    """In-memory registry that ends with the process that started it. Not thread-safe."""

    def __init__(self, home: str | os.PathLike[str], *, app: Path = APP) -> None:
        self.home = Path(home).resolve()
        self._app = app
        self._process = LocalProcess(self.home, f"-Ddynamic-tables.home={self.home}", name="registry")
        self._port: int | None = None

    @property
    def url(self) -> str:
        """Root URL of Confluent's API."""
        if self._port is None:
            msg = f"The schema registry in {self.home} has not been started, so it has no address."
            raise LocalRegistryError(msg)
        return f"http://{LOOPBACK}:{self._port}/apis/ccompat/v7"

    def start(self, *, timeout: float = 120) -> Self:
        """Start the registry, on its previous port if it had one, and return once it answers."""
        java = find_java()
        programs = list(self._app.glob("*-runner.jar"))
        if not programs:
            msg = f"The schema registry is not installed in {self._app}. Run `make servers`."
            raise RegistryNotSetUpError(msg)
        self.home.mkdir(parents=True, exist_ok=True)
        self._port = self._port or free_port()
        settings = {
            "dynamic-tables.home": str(self.home),
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": str(self._port),
            "quarkus.management.enabled": "false",
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
        }
        self._process.run_until(
            lambda: is_answered(f"{self.url}/subjects"),
            (java, *JVM, *(f"-D{name}={value}" for name, value in settings.items()), "-jar", programs[0]),
            timeout=timeout,
            what="The schema registry",
            error=LocalRegistryError,
        )
        return self

    def stop(self) -> None:
        """Stop the registry; its schemas are lost. Does nothing if it is down."""
        self._process.end(signal.SIGTERM, 10)
