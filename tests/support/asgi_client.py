"""HTTP client that calls an ASGI application directly, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


class AsgiClient:
    """Sends requests one at a time, each on its own. Exceptions of the application propagate to the caller."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return self.request("GET", path, **arguments)

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://pages") as client:
                return await client.request(method, path, **arguments)

        return asyncio.run(ask())
