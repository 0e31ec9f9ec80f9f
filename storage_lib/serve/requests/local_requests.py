"""Keeps web pages out of a server that asks for no token.

A page can point its own host name at 127.0.0.1 and let the visitor's browser read from there (DNS rebinding), or send
requests whose answers it does not see. Such requests have another name in ``Host``, or an ``Origin``; those of clients
of a catalog have neither.
"""

from __future__ import annotations

from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


class LocalRequests:
    """ASGI middleware that answers only programs of this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._checked = TrustedHostMiddleware(app, list(LOOPBACK), www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 400 or 403."""
        if scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"]):
            refusal = PlainTextResponse("requests of web pages are refused", status_code=403)
            await refusal(scope, receive, send)
            return
        await self._checked(scope, receive, send)
