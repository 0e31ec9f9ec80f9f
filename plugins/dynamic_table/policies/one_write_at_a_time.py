"""Serialises API-server writes on SQLite to avoid lock waits.

SQLite has one lock for all writers. A request that has written holds it until the event loop runs its commit, while
the audit of the next request writes in the event loop itself and blocks there on the same lock. Both wait until
SQLite's busy timeout (by default five seconds) and then fail. Two clicks at once are enough, or one click while a task
reports its state. Databases with row locks do not need this.
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
    """An ASGI middleware: a request that may write starts after the previous one was answered.

    The request's body is received before that, so that a client that stalls while sending does not block others.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._one_at_a_time = asyncio.Lock() if conf.get("database", "sql_alchemy_conn").startswith("sqlite") else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process the request; one that may write waits for earlier ones."""
        if self._one_at_a_time is None or scope["type"] != "http" or scope["method"] in READS:
            await self._app(scope, receive, send)
            return
        come = await _whole_request(receive)
        async with self._one_at_a_time:
            await self._app(scope, lambda: _next_of(come, receive), send)


async def _whole_request(receive: Receive) -> deque[Message]:
    """Return the messages of the whole request body, or the message that the client has disconnected."""
    come = deque([await receive()])
    while come[-1].get("more_body"):
        come.append(await receive())
    return come


async def _next_of(come: deque[Message], receive: Receive) -> Message:
    return come.popleft() if come else await receive()
