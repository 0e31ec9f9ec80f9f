"""Rejects requests to Airflow's API server whose Host header names another host.

A web page can point its own host name at 127.0.0.1 (DNS rebinding) and then read an API server on this machine from
the visitor's browser. Such a request carries the page's host name. The check is enabled if ``[api] base_url`` is a
loopback address or if ``[dynamic_table] allowed_hosts`` lists host names. It is disabled for a server with a public
name, because a proxy in front of it may use other names.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.configuration import conf

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["AllowedHosts", "allowed_hosts"]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[^\s\[\]:/?#@,]+)(:[0-9]*)?")


class AllowedHosts:
    """An ASGI middleware that checks the Host header.

    Starlette's own check differs between the versions of Airflow: older ones can't read the port of an IPv6 address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._patterns = tuple(pattern.lower() for pattern in allowed_hosts())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 400."""
        if scope["type"] not in ("http", "websocket") or "*" in self._patterns or self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        # Every Airflow process imports this module; only the API server answers requests.
        from starlette.responses import PlainTextResponse

        await PlainTextResponse("Invalid host header", status_code=400)(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        values = [value for name, value in scope["headers"] if name == b"host"]
        found = _HOST.fullmatch(values[0].decode("latin-1").lower()) if len(values) == 1 else None
        return found is not None and any(_matches(found["host"], pattern) for pattern in self._patterns)


def _matches(host: str, pattern: str) -> bool:
    """Return whether a host is the one that a pattern names, or a name below that of ``*.name``."""
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def allowed_hosts() -> list[str]:
    """Return the host names that requests may name; ``["*"]`` for any."""
    configured = conf.get("dynamic_table", "allowed_hosts", fallback="") or ""
    listed = [host.strip() for host in configured.split(",") if host.strip()]
    own = urlsplit(conf.get("api", "base_url", fallback="") or "").hostname or ""
    if not listed and not _is_loopback(own):
        return ["*"]
    # Tasks call the server by this address, which differs in a container network.
    workers = urlsplit(conf.get("core", "execution_api_server_url", fallback="") or "").hostname or ""
    named = (*listed, own, workers, *LOOPBACK)
    return list(
        dict.fromkeys(f"[{host}]" if ":" in host and not host.startswith("[") else host for host in named if host)
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
