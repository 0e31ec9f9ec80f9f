"""Faulty network on demand: a proxy between a client and an HTTP server that disturbs chosen requests.

with FaultyHttp(s3.endpoint) as network:
    network.strike(HttpFault.DROP_ANSWER, "PUT", "snapshot-5")
    ...                                                        a client of network.endpoint
    assert network.struck == 1
"""

from __future__ import annotations

import http.client
import threading
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import unquote, urlsplit

_OF_A_CONNECTION = frozenset({"connection", "transfer-encoding", "keep-alive"})


class HttpFault(Enum):
    """Fault of one request."""

    DROP_ANSWER = auto()
    """The server executes the request; the connection closes without a response."""
    DELAY_ANSWER = auto()
    """The server executes the request; the client receives no response before its timeout."""
    ANSWER_503 = auto()
    """The server executes the request; the client receives 503, as from a busy server."""
    REPEAT = auto()
    """The server executes the request twice, as behind some proxies; the client receives the second response."""
    DROP = auto()
    """The server never receives the request; the connection is closed."""
    REFUSE = auto()
    """The server never receives the request; the client receives 503."""
    DELAY = auto()
    """The client receives no response before its timeout; the server receives the request with the next of its kind."""


class FaultyHttp:
    """Forwards every request unchanged, signature included; ``struck`` counts the disturbed requests."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream).netloc
        self._faults: list[tuple[HttpFault, str, str]] = []
        self._late: list[tuple[str, str, dict[str, str], bytes]] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.struck = 0
        self.late_statuses: list[int] = []
        network = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self) -> None:
                network.handle(self)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = do_any  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> str:
        """URL for clients."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def strike(self, fault: HttpFault, method: str, path: str, *, times: int = 1) -> None:
        """Disturb the next ``times`` requests of this method whose path contains ``path``."""
        with self._lock:
            self._faults += [(fault, method, path)] * times

    def deliver(self) -> None:
        """Send the delayed requests to the server."""
        with self._lock:
            late, self._late = self._late, []
        for request in late:
            self.late_statuses.append(self._forward(*request)[0])

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Handle one request."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        request = (handler.command, handler.path, dict(handler.headers.items()), body)
        fault = self._fault_of(*request[:2])
        if fault is HttpFault.DELAY:
            with self._lock:
                self._late.append(request)
        elif fault not in (HttpFault.DROP, HttpFault.REFUSE):
            status, headers, answer = self._forward(*request)
        if fault is HttpFault.REPEAT:
            status, headers, answer = self._forward(*request)
        if fault in (HttpFault.DROP, HttpFault.DROP_ANSWER):
            handler.close_connection = True
            return
        if fault in (HttpFault.DELAY, HttpFault.DELAY_ANSWER):
            self._closing.wait(20)
            handler.close_connection = True
            return
        if fault in (HttpFault.REFUSE, HttpFault.ANSWER_503):
            status, headers, answer = 503, [], b"<Error><Code>SlowDown</Code></Error>"
        self._answer(handler, status, headers, answer)

    def _fault_of(self, method: str, path: str) -> HttpFault | None:
        with self._lock:
            for index, (fault, of_method, of_path) in enumerate(self._faults):
                if of_method == method and of_path in unquote(path):
                    del self._faults[index]
                    self.struck += 1
                    return fault
        return None

    def _forward(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self._upstream, timeout=120)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(
        self, handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], answer: bytes
    ) -> None:
        handler.send_response_only(status)
        lengths = [value for name, value in headers if name.lower() == "content-length"]
        for name, value in headers:
            if name.lower() not in _OF_A_CONNECTION and name.lower() != "content-length":
                handler.send_header(name, value)
        # The response to HEAD carries the length of the body that is not sent.
        handler.send_header("Content-Length", lengths[0] if lengths and handler.command == "HEAD" else str(len(answer)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(answer)
