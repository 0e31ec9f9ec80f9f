"""Rejects requests to Airflow's API server whose Host header names another host.

A web page can point its own host name at 127.0.0.1 (DNS rebinding) and then read an API server on this machine from
the visitor's browser. Such a request carries the page's host name. The check is enabled if ``[api] base_url`` is a
loopback address or if ``[dynamic_table] allowed_hosts`` lists host names. It is disabled for a server with a public
name, because a proxy in front of it may use other names.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.configuration import conf

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["AllowedHosts", "allowed_hosts"]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class AllowedHosts:
    """An ASGI middleware: Starlette's check of the Host header, with Airflow's configuration."""

    def __init__(self, app: ASGIApp) -> None:
        # Every Airflow process imports this module; only the API server creates the middleware.
        from starlette.middleware.trustedhost import TrustedHostMiddleware

        self._checked = TrustedHostMiddleware(app, allowed_hosts(), www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 400."""
        await self._checked(scope, receive, send)


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
