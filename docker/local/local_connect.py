"""Kafka Connect on this machine without Docker: one worker with Debezium's connectors, loopback only.

    with LocalConnect(folder, kafka.bootstrap_servers) as connect:
        connect.put("shop", {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", ...})

The positions of its connectors are in ``home``: a restart there continues from them, with the connectors that were put.
The program comes from `make servers`. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from java_runtime import find_java
from local_process import LOOPBACK, LocalProcess, LocalServer, free_port, is_free

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

__all__ = ["ConnectNotSetUpError", "LocalConnect", "LocalConnectError"]

JARS = Path(__file__).resolve().parents[2] / ".local" / "connect" / "lib"
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
JSON = "org.apache.kafka.connect.json.JsonConverter"


class LocalConnectError(RuntimeError):
    """The worker did not start, or a connector failed; the message ends with what it said."""


class ConnectNotSetUpError(LocalConnectError):
    """The program is missing; `make servers` fetches it."""


class LocalConnect(LocalServer):
    """Worker on ``port`` (default: a free one) that ends with the process that started it. Not thread-safe."""

    def __init__(
        self, home: str | os.PathLike[str], bootstrap_servers: str, *, jars: Path = JARS, port: int | None = None
    ) -> None:
        self.home = Path(home).resolve()
        self._wanted_port = port
        self._bootstrap_servers = bootstrap_servers
        self._jars = jars
        self._connectors: dict[str, dict[str, str]] = {}
        self._properties = self.home / "worker.properties"
        self._process = LocalProcess(self.home, str(self._properties), name="connect")
        self._port: int | None = None

    @property
    def url(self) -> str:
        """Address of the worker's own API."""
        if self._port is None:
            msg = f"The Kafka Connect in {self.home} has not been started, so it has no address."
            raise LocalConnectError(msg)
        return f"http://{LOOPBACK}:{self._port}"

    def start(self, *, timeout: float = 180) -> Self:
        """Start the worker, with its connectors if it had some, and return once it answers."""
        java = find_java()
        if not any(self._jars.glob("connect-runtime-*.jar")):
            msg = f"Kafka Connect is not installed in {self._jars}. Run `make servers`."
            raise ConnectNotSetUpError(msg)
        self.home.mkdir(parents=True, exist_ok=True)
        if self._port is None and self._wanted_port is not None and not is_free(self._wanted_port):
            msg = f"Port {self._wanted_port} is in use, so Kafka Connect can't listen there; choose another port."
            raise LocalConnectError(msg)
        self._port = self._port or self._wanted_port or free_port()
        settings = {
            "bootstrap.servers": self._bootstrap_servers,
            "listeners": self.url,
            "offset.storage.file.filename": str(self.home / "offsets"),
            "offset.flush.interval.ms": "100",
            "key.converter": JSON,
            "value.converter": JSON,
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "plugin.discovery": "service_load",
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        entry = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = (java, *JVM, "-cp", f"{self._jars}/*", entry, self._properties)
        self._process.run_until(self._answers, command, timeout=timeout, what="Kafka Connect", error=LocalConnectError)
        for name, config in self._connectors.items():
            self._send("PUT", f"/connectors/{name}/config", config)
        return self

    def stop(self) -> None:
        """Stop the worker; a restart in its folder continues. Does nothing if it is down."""
        self._process.end(signal.SIGTERM, 30)

    def kill(self) -> None:
        """Kill the worker (SIGKILL), as a crash would: what it has sent since its last position, it sends again."""
        self._process.end(signal.SIGKILL, 30)

    @property
    def log_file(self) -> Path:
        """File of the worker's output."""
        return self._process.log_file

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change its configuration."""
        self._send("PUT", f"/connectors/{name}/config", dict(config))
        self._connectors[name] = dict(config)

    def remove(self, name: str) -> None:
        """Stop a connector and forget it, if it was put; its position remains."""
        if self._connectors.pop(name, None) is not None:
            self._send("DELETE", f"/connectors/{name}")

    def failure(self, name: str) -> str | None:
        """Return why a connector or its task has failed, or None."""
        try:
            status = json.loads(self._send("GET", f"/connectors/{name}/status"))
        except LocalConnectError as error:
            if isinstance(error.__cause__, HTTPError) and error.__cause__.code == HTTPStatus.NOT_FOUND:
                return None  # not yet started
            raise
        parts = (status["connector"], *status["tasks"])
        return next((part.get("trace", "") for part in parts if part["state"] == "FAILED"), None)

    def positions(self, name: str) -> list[dict[str, object]]:
        """Return up to where in its source a connector has read what Kafka has acknowledged, without a gap."""
        stored = json.loads(self._send("GET", f"/connectors/{name}/offsets"))
        return [each["offset"] for each in stored["offsets"]]

    def restart_tasks(self, name: str) -> None:
        """Start a connector again whose task has failed."""
        self._send("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")

    def _send(self, method: str, path: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310 - ours
        try:
            with urlopen(request, timeout=90) as answer:  # noqa: S310 - our own address
                return bytes(answer.read())
        except HTTPError as error:
            msg = f"Kafka Connect refused {method} {path} ({error.code}): {error.read().decode(errors='replace')}"
            raise LocalConnectError(msg) from error

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/connectors", timeout=2) as answer:  # noqa: S310 - our own address
                return bool(answer.status == HTTPStatus.OK)
        except (URLError, HTTPException, OSError):
            return False
