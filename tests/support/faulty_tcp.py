"""Faulty connection on demand: forwards bytes between clients and a server, and disconnects at chosen words.

with FaultyTcp(namenode_port) as network:
    network.cut(b"rename2", is_done=True)
    ...                                   a client of network.port
    assert network.struck == 1
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class FaultyTcp:
    """TCP proxy; ``struck`` counts the disturbed requests."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._cuts: list[tuple[bytes, bool, Callable[[], object]]] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.struck = 0
        self._is_down = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing the socket alone does not wake a blocked accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            each.close()

    @property
    def port(self) -> int:
        """Port for clients."""
        return int(self._listener.getsockname()[1])

    def stop(self) -> None:
        """Close all connections, and each new one at once, until ``start``."""
        self._is_down = True
        _end(*self._open)

    def start(self) -> None:
        """Let new connections through again."""
        self._is_down = False

    def cut(self, word: bytes, *, is_done: bool, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Close the connection at the next request with this word: before it is executed, or after, without a response.

        ``meanwhile`` is called when the request arrives.
        """
        with self._lock:
            self._cuts.append((word, is_done, meanwhile))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_down:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._upstream))
            self._open += [client, server]
            is_cut = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, is_cut), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server, is_cut), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, is_cut: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                passes = self._passes(data)
                if passes is not None:
                    is_cut.set()
                if passes is False:
                    break
                server.sendall(data)
                if passes:
                    return  # the response ends the connection
        _end(client, server)

    def _answers(self, client: socket.socket, server: socket.socket, is_cut: threading.Event) -> None:
        with suppress(OSError):
            while (data := server.recv(65536)) and not is_cut.is_set():
                client.sendall(data)
        _end(client, server)

    def _passes(self, data: bytes) -> bool | None:
        """Return ``is_done`` of the cut that matches a request; None if the request passes unchanged."""
        with self._lock:
            cut = next((each for each in self._cuts if each[0] in data), None)
            if cut is None:
                return None
            self._cuts.remove(cut)
            self.struck += 1
        _, is_done, meanwhile = cut
        meanwhile()
        return is_done


def _end(*connections: socket.socket) -> None:
    for each in connections:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
