"""Runs the server in this process, until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from storage_lib.catalog.catalog import Catalog
from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import Clock
from storage_lib.serve.access.client_file import ClientFile
from storage_lib.serve.access.server_access import LocalAccess, TokenAccess
from storage_lib.serve.serving_app import WAREHOUSE, serving_app
from storage_lib.serve.vending.vending import Vending

_BACKLOG = 2048
_STOP_SECONDS = 10


def serve_catalog(
    catalog: Catalog,
    clock: Clock,
    *,
    host: str = "127.0.0.1",
    port: int = 8181,
    clients: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    warehouse: str = WAREHOUSE,
    vending: Vending | None = None,
    on_listening: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve a catalog until SIGINT or SIGTERM; requests that run then are answered.

    ``clients`` is the file of clients. Without one, only programs of this machine are answered, and nothing can be
    changed. ``certificate`` and ``key`` are PEM files for TLS. ``on_listening`` is called with the server's address
    once it accepts connections; port 0 chooses a free one.

    ``vending`` makes credentials for clients, and is tried once before the server listens; None: they need their own.

    Raises ``InvalidInputError`` for a host that others can reach without ``clients``, an invalid file, a key without a
    certificate, and ``vending`` without ``clients``; ``UnavailableError`` if that gets no credentials;
    ``OSError`` if the address is in use.
    """
    if clients is None and not is_loopback(host):
        message = (
            f"host {host} can be reached from other machines, and without tokens everybody there could read all "
            "tables; name the clients that may with --clients, or serve on 127.0.0.1"
        )
        raise InvalidInputError(message)
    if (certificate is None) is not (key is None):
        message = "TLS needs both a certificate and its key"
        raise InvalidInputError(message)
    if vending is not None and clients is None:
        message = (
            "a role needs clients: without tokens every program of this machine would get credentials for the store; "
            "name those that may with --clients"
        )
        raise InvalidInputError(message)
    if vending is not None:
        vending.try_once()
    access = LocalAccess() if clients is None else TokenAccess(ClientFile(clients), clock)
    settings = uvicorn.Config(
        serving_app(catalog, access, clock, warehouse=warehouse, vending=vending),
        log_level="warning",
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    settings.load()  # an invalid certificate is refused before the socket is opened
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=_BACKLOG) as listening:
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if certificate is None else "https"
        on_listening(f"{scheme}://{shown}:{listening.getsockname()[1]}")
        uvicorn.Server(settings).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
