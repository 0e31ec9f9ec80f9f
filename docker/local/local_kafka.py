"""Kafka broker on this machine without Docker: KRaft, broker and controller in one JVM, loopback only.

    with LocalKafka(folder) as kafka:
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)

All files of the broker are below ``home``; a restart there finds its data and uses the same port. The jars come from
`make setup`. Standard library only.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import ssl
import struct
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from java_runtime import find_java
from local_process import LOOPBACK, LocalProcess, LocalServer, free_port, is_free

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

__all__ = ["KafkaNotSetUpError", "LocalKafka", "LocalKafkaError", "PortInUseError"]

JARS = Path(__file__).resolve().parents[2] / ".local" / "kafka" / "lib"
JVM = (
    "-Xms128m",
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)
# Archive of Kafka's parsed and verified classes, created by `make servers` (`kafka_archive.py`; JEP 350). A JVM that
# can't use it runs without it.
ARCHIVE = JARS.parents[1] / "kafka_classes" / "classes.jsa"
# One node: every internal topic has one replica and, so that the broker starts quickly, one partition.
SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    # Allow commit intervals of hours, and abort a transaction within one second after its timeout instead of ten.
    "transaction.max.timeout.ms": "86400000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class LocalKafkaError(RuntimeError):
    """The broker did not start; the message ends with its output."""


class PortInUseError(LocalKafkaError):
    """Another process listens on the port."""


class KafkaNotSetUpError(LocalKafkaError):
    """The broker's jars are missing; `make setup` fetches them."""


class LocalKafka(LocalServer):
    """Broker in ``home``, on ``port`` (default: a free one, which restarts keep). Not thread-safe.

    ``settings`` override the default ones; for a ``protocol`` other than PLAINTEXT they name certificates and users.
    With ``joins`` the broker joins that broker's cluster, which must be running, under its own ``node_id``. A broker
    ends when the process that started it ends or crashes, unless ``outlives_us``; then ``LocalKafka(home).stop()``
    stops it from any process. ``jvm_options`` default to those of a quick start.
    """

    def __init__(
        self,
        home: str | os.PathLike[str],
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        protocol: str = "PLAINTEXT",
        node_id: int = 1,
        joins: LocalKafka | None = None,
        outlives_us: bool = False,
        jars: Path = JARS,
        jvm_options: Sequence[str] | None = None,
    ) -> None:
        self.home = Path(home).resolve()
        self.node_id = node_id
        self._protocol = protocol
        self._joins = joins
        self._wanted_port = port
        self._settings = dict(settings or {})
        self._jars = jars
        self._jvm_options = _quick_start() if jvm_options is None else tuple(jvm_options)
        self._process = LocalProcess(self.home, str(self._properties), name="kafka", outlives_us=outlives_us)

    @property
    def port(self) -> int:
        """The broker's port; known once it has been started in ``home``."""
        return self._known_ports()[0]

    @property
    def bootstrap_servers(self) -> str:
        """Address for Kafka clients."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def controller_port(self) -> int:
        """Port of the controller, for other brokers of the cluster."""
        return self._known_ports()[1]

    def start(self, *, timeout: float = 120) -> Self:
        """Start the broker unless it already runs in ``home``, and return once it answers requests."""
        if self.pid is not None:
            return self
        java = find_java()
        if not any(self._jars.glob("kafka_2*.jar")):
            msg = f"There are no Kafka jars in {self._jars}. Run `make setup`."
            raise KafkaNotSetUpError(msg)
        deadline = time.monotonic() + timeout
        while True:
            port, controller_port = self._choose_ports()
            self._write_properties(port, controller_port)
            self._format_once(java)
            self._process.launch(*self._java(java, "kafka.Kafka", str(self._properties)))
            try:
                self._wait_until_ready(port, deadline)
            except PortInUseError:
                # Taken between our check and the broker's start. Retry with another port unless the caller chose it.
                self._properties.unlink()
                if self._wanted_port is not None or time.monotonic() > deadline:
                    raise
            else:
                return self

    def stop(self, *, timeout: float = 30) -> None:
        """Shut the broker down cleanly, or kill it after ``timeout`` seconds. Does nothing if it is down."""
        self._process.end(signal.SIGTERM, timeout)

    def kill(self) -> None:
        """Kill the broker (SIGKILL), as a crash would: it flushes nothing and notifies no client."""
        self._process.end(signal.SIGKILL, 30)

    @property
    def log_file(self) -> Path:
        """File of the broker's output."""
        return self._process.log_file

    @property
    def _properties(self) -> Path:
        return self.home / "server.properties"

    def _known_ports(self) -> tuple[int, int]:
        """Read the broker's and the controller's port from the settings of the last start."""
        if not self._properties.exists():
            msg = f"The broker in {self.home} has not been started yet, so it has no port."
            raise LocalKafkaError(msg)
        lines = dict(line.split("=", 1) for line in self._properties.read_text().splitlines())
        ports = [int(listener.rsplit(":", 1)[1]) for listener in lines["listeners"].split(",")]
        return ports[0], ports[1] if len(ports) > 1 else 0

    def _choose_ports(self) -> tuple[int, int]:
        """Return the ports: the wanted one, else the last start's, else a free one; raises PortInUseError if taken."""
        port, controller_port = self._known_ports() if self._properties.exists() else (0, 0)
        port = self._wanted_port or port
        if port and not is_free(port):
            msg = (
                f"Port {port} on {LOOPBACK} is in use, so Kafka cannot listen there. "
                f"`lsof -i :{port}` tells by whom; end that, or choose another port."
            )
            raise PortInUseError(msg)
        if not (controller_port and controller_port != port and is_free(controller_port)):
            controller_port = 0
        port = port or free_port(controller_port)
        return port, controller_port or free_port(port)

    def _write_properties(self, port: int, controller_port: int) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        listener, controller = f"{self._protocol}://{LOOPBACK}:{port}", f"CONTROLLER://{LOOPBACK}:{controller_port}"
        leads = self._joins is None
        voter = self if self._joins is None else self._joins
        voter_port = controller_port if self._joins is None else self._joins.controller_port
        settings = {
            **SETTINGS,
            "node.id": str(self.node_id),
            "process.roles": "broker,controller" if leads else "broker",
            "listeners": f"{listener},{controller}" if leads else listener,
            "advertised.listeners": listener,
            "listener.security.protocol.map": f"{self._protocol}:{self._protocol},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": self._protocol,
            "controller.quorum.voters": f"{voter.node_id}@{LOOPBACK}:{voter_port}",
            "log.dirs": str(self.home / "data"),
            **self._settings,
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _format_once(self, java: Path) -> None:
        """Format the data folder with a cluster id, which KRaft requires before the first start."""
        if (self.home / "data" / "meta.properties").exists():
            return
        cluster_id = _new_cluster_id() if self._joins is None else self._joins.cluster_id
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties))
        formatted = subprocess.run(self._java(java, *tool), capture_output=True, text=True, check=False)
        if formatted.returncode != 0:
            msg = f"Kafka could not format {self.home / 'data'}:\n{formatted.stdout}{formatted.stderr}"
            raise LocalKafkaError(msg)

    @property
    def cluster_id(self) -> str:
        """Cluster id of the data folder; known once the broker has been started in ``home``."""
        lines = (self.home / "data" / "meta.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))

    def _java(self, java: Path, *arguments: str) -> list[str]:
        return [str(java), *JVM, *self._jvm_options, "-cp", f"{self._jars}/*", *arguments]

    def _wait_until_ready(self, port: int, deadline: float) -> None:
        try:
            is_encrypted = self._protocol.endswith("SSL")
            answers = lambda: _answers(port, is_encrypted=is_encrypted)  # noqa: E731
            self._process.wait_until(answers, deadline=deadline, what="Kafka", error=LocalKafkaError)
        except LocalKafkaError as error:
            if "Address already in use" not in self.log_file.read_text(errors="replace"):
                raise
            msg = f"Port {port} on {LOOPBACK}, or the controller's, was taken while Kafka started.\n{error}"
            raise PortInUseError(msg) from error


def _quick_start() -> tuple[str, ...]:
    return (f"-XX:SharedArchiveFile={ARCHIVE}",) if ARCHIVE.exists() else ()


def _new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def _answers(port: int, *, is_encrypted: bool = False) -> bool:
    """Return whether the broker answers an ApiVersions request: it listens before it can answer."""
    client = b"local_kafka"
    request = struct.pack(f">hhih{len(client)}s", 18, 0, 1, len(client), client)
    try:
        plain = socket.create_connection((LOOPBACK, port), timeout=1)
        with _encrypted(plain) if is_encrypted else plain as connection:
            connection.settimeout(5)
            connection.sendall(struct.pack(">i", len(request)) + request)
            return len(connection.recv(8)) > 0
    except OSError:
        return False


def _encrypted(plain: socket.socket) -> socket.socket:
    """Encrypt the connection without verifying the server, since nothing confidential is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return context.wrap_socket(plain)
    except OSError:
        plain.close()
        raise
