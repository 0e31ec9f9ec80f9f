"""Keeps the writes of Airflow's API server apart where its database is SQLite, which else stand still for each other.

SQLite has one lock for all writers. A request that has written keeps it until the event loop lets its commit run; the
audit of the next request writes in the event loop itself, and waits there for that lock. Both wait until SQLite's
patience ends: five seconds, and then an error, unless somebody made it longer. It takes two clicks at once, or one
click while a task tells of itself. Databases that lock rows have no such lock to wait for, and are left alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from airflow.configuration import conf

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["OneWriteAtATime"]

READS = ("GET", "HEAD", "OPTIONS")


class OneWriteAtATime:
    """An ASGI middleware: a request that may write begins when the one before it has been answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turn = asyncio.Lock() if conf.get("database", "sql_alchemy_conn").startswith("sqlite") else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request pass, in its turn."""
        if self._turn is None or scope["type"] != "http" or scope["method"] in READS:
            await self._app(scope, receive, send)
            return
        async with self._turn:
            await self._app(scope, receive, send)
