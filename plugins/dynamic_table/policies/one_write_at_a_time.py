"""Keeps the writes of Airflow's API server apart where its database is SQLite, which else stand still for each other.

SQLite has one lock for all writers. A request that has written keeps it until the event loop lets its commit run; the
audit of the next request writes in the event loop itself, and waits there for that lock. Both wait until SQLite's
patience ends: five seconds, and then an error, unless somebody made it longer. It takes two clicks at once, or one
click while a task tells of itself. Databases that lock rows have no such lock to wait for, and are left alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from airflow.configuration import conf

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["OneWriteAtATime"]

READS = ("GET", "HEAD", "OPTIONS")


class OneWriteAtATime:
    """An ASGI middleware: a request that may write begins when the one before it has been answered.

    It has come whole by then: a client that stands still in the middle of its request holds up nobody.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turn = asyncio.Lock() if conf.get("database", "sql_alchemy_conn").startswith("sqlite") else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request pass, in its turn."""
        if self._turn is None or scope["type"] != "http" or scope["method"] in READS:
            await self._app(scope, receive, send)
            return
        come = await _whole_request(receive)
        async with self._turn:
            await self._app(scope, lambda: _next_of(come, receive), send)


async def _whole_request(receive: Receive) -> deque[Message]:
    """Return what the client has sent once that is all, or the word that the client has gone."""
    come = deque([await receive()])
    while come[-1].get("more_body"):
        come.append(await receive())
    return come


async def _next_of(come: deque[Message], receive: Receive) -> Message:
    return come.popleft() if come else await receive()
