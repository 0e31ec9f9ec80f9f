"""kafka-python's connection manager, extended to keep the broker's last error when a connection fails or closes.

The original discards a response that arrives right before the broker closes the connection, which is how a
broker refuses credentials; and while it bootstraps, it retries after any error and finally reports only a timeout.

This uses names of kafka-python that it may change in any release, even a patch: 3.0.8 did. A version is admitted if the
tests of the log have passed on it, or if it is a later patch of one, and what we extend and call in it takes the
parameters that we give.
"""

from __future__ import annotations

import re
from inspect import signature
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.net import inet
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

_SLICE_MS = 1_000
_CREDENTIALS_REFUSED = (
    kafka.errors.SaslAuthenticationFailedError,
    kafka.errors.UnsupportedSaslMechanismError,
    kafka.errors.IllegalSaslStateError,
)
_CERTIFICATE_REFUSED = "CERTIFICATE_VERIFY_FAILED"
_UNENCRYPTED = frozenset({"PLAINTEXT", "SASL_PLAINTEXT"})

OLDEST, BEYOND = (3, 0, 8), (3, 1)
"""The first version that fits, and the first one after those that may. ``pyproject.toml`` has the same range."""
NEWEST_SEEN = "3.0.12"
"""The newest version that the tests have run with."""

_PARAMETERS: tuple[tuple[object, str, tuple[str, ...]], ...] = (
    (KafkaConnectionManager, "__init__", ("self", "net", "configs")),
    (KafkaConnectionManager, "_build_transport", ("self", "node", "timeout_at")),
    (KafkaConnectionManager, "bootstrap", ("self", "timeout_ms")),
    (KafkaConnectionManager, "send", ("self", "request", "node_id")),
    (KafkaSSLTransport, "__init__", ("self", "net", "sock", "host", "configs")),
    (KafkaTCPTransport, "__init__", ("self", "net", "sock", "host")),
    (KafkaTCPTransport, "_sock_recv", ("self",)),
    (NetworkSelector, "call_soon_threadsafe", ("self", "callback")),
    (inet, "create_connection", ("net", "host", "port", "socket_options", "proxy_url", "timeout_at")),
)
"""What we extend, replace and call, each with the first of its parameters; more may follow."""


def refuse_unfitting_client() -> None:
    """Raise ``ImportError`` if the installed kafka-python is not one that this library runs on."""
    found = kafka.__version__
    if not OLDEST <= _numbers(found) < BEYOND:
        oldest, beyond = (".".join(map(str, each)) for each in (OLDEST, BEYOND))
        needed = f"kafka-python>={oldest},<{beyond}"
        message = f"kafka-python {found} does not fit, {needed} does: pip install '{needed}'"
        raise ImportError(message, name="kafka")
    for owner, name, wanted in _PARAMETERS:
        called = getattr(owner, name, None)
        given = () if called is None else tuple(signature(called).parameters)[: len(wanted)]
        if given != wanted:
            place = getattr(owner, "__name__", owner)
            message = (
                f"kafka-python {found} has changed {place}.{name}, which this library uses: its parameters are "
                f"({', '.join(given)}), and have to be ({', '.join(wanted)}): pip install kafka-python=={NEWEST_SEEN}"
            )
            raise ImportError(message, name="kafka")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, such as (3, 0, 12); none for a text without them."""
    return tuple(map(int, re.findall(r"\d+", text.partition("+")[0])[:3])) if text[:1].isdigit() else ()


refuse_unfitting_client()


class KafkaConnections(KafkaConnectionManager):  # type: ignore[misc]
    """Connection manager that keeps the last failure. Call ``connect`` instead of ``bootstrap``."""

    def __init__(self, net: Any, **config: object) -> None:
        super().__init__(net, **config)
        self._failure: BaseException | None = None

    def connect(self, limit_ms: int) -> None:
        """Connect to a first broker, retrying for ``limit_ms``.

        Raises ``KafkaConnectionError`` with the newest reason, and ``InvalidInputError`` as soon as a broker refuses
        our credentials or presents a certificate that no trusted authority has signed.
        """
        for _ in range(0, limit_ms, _SLICE_MS):
            try:
                self.bootstrap(min(_SLICE_MS, limit_ms))
            except kafka.errors.KafkaTimeoutError:
                refuse_for_good(self._failure, self._servers)
            else:
                return
        raise kafka.errors.KafkaConnectionError(self._reason()) from self._failure

    def get_connection(self, *arguments: Any, **named: Any) -> Any:
        """Return a connection as the base class does, and record why it fails."""
        connection = super().get_connection(*arguments, **named)
        if not connection.init_future.is_done:
            connection.init_future.add_errback(self._note)
        return connection

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """Build a transport as the base class does, but close the socket if the handshake fails."""
        options, proxy = self.config["socket_options"], self.config["proxy_url"]
        connected = await inet.create_connection(
            self._net, node.host, node.port, options, proxy_url=proxy, timeout_at=timeout_at
        )
        try:
            transport = self._transport(connected, node.host)
        except BaseException:
            connected.close()
            raise
        try:
            await transport.handshake()
        except Exception as failure:
            transport._sock.close()  # noqa: SLF001  closing the transport would wait for a reader that it never had
            message = f"handshake failed: {failure}"
            raise kafka.errors.KafkaConnectionError(message) from failure
        return transport

    def _transport(self, connected: Any, host: str) -> Any:
        if self.ssl_enabled:
            options = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
            transport = KafkaSSLTransport(self._net, connected, host=host, **options)
        else:
            transport = KafkaTCPTransport(self._net, connected, host=host)
        transport._sock_recv = _words_before_the_end(transport._sock_recv)  # noqa: SLF001
        return transport

    @property
    def _servers(self) -> str:
        return str(self.config["bootstrap_servers"])

    def _note(self, failure: BaseException) -> None:
        self._failure = failure

    def _reason(self) -> str:
        if isinstance(self._failure, OSError) or "ECONNREFUSED" in str(self._failure):
            return "no broker answers"
        is_open = str(self.config["security_protocol"]) in _UNENCRYPTED
        hint = "; does it want TLS? See log.kafka.security.protocol" if is_open else ""
        return f"the broker refuses the connection ({self._failure}){hint}"


def refuse_for_good(failure: BaseException | None, servers: str) -> None:
    """Raise ``InvalidInputError`` for a permanent failure to connect."""
    if isinstance(failure, _CREDENTIALS_REFUSED):
        message = (
            f"Kafka at {servers} refuses the credentials ({type(failure).__name__}); check "
            "log.kafka.security.protocol and the log.kafka.sasl.* options of the connection"
        )
        raise InvalidInputError(message) from failure
    if _CERTIFICATE_REFUSED in str(failure):
        message = (
            f"Kafka at {servers} shows a certificate that can't be verified ({failure}); let log.kafka.ssl.cafile name "
            "the certificates of the authority that signed it, and bootstrap.servers the names it was signed for"
        )
        raise InvalidInputError(message) from failure


def _words_before_the_end(
    receive: Callable[[], tuple[bytes, BaseException | None]],
) -> Callable[[], tuple[bytes, BaseException | None]]:
    """Return data received before the end of the connection; the next read reports the end."""

    def received() -> tuple[bytes, BaseException | None]:
        data, failure = receive()
        return (data, None) if data else (data, failure)

    return received
