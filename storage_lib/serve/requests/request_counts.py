"""Counts and times of requests, in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock

from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OTHER = "other"
_METHODS = frozenset({"DELETE", "GET", "HEAD", "POST"})
_COUNT, _SECONDS = "dynamic_table_serve_requests_total", "dynamic_table_serve_request_seconds_total"


class RequestCounts:
    """Counts requests by catalog, method, path (with its parameters' names) and status. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[tuple[str, str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, str, str, int]] = Counter()

    def add(self, catalog: str, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request that took ``seconds``."""
        key = (catalog, method, path, status)
        with self._lock:
            self._counts[key] += 1
            self._seconds[key] += seconds  # type: ignore[assignment]  # a Counter adds any numbers

    def as_text(self) -> str:
        """Return all counts as Prometheus scrapes them."""
        with self._lock:
            counts, seconds = dict(self._counts), dict(self._seconds)
        lines = []
        for name, values, what in (
            (_COUNT, counts, "Requests that were answered."),
            (_SECONDS, seconds, "Seconds that requests took."),
        ):
            lines += [f"# HELP {name} {what}", f"# TYPE {name} counter"]
            lines += [f"{name}{_labels(*key)} {value}" for key, value in sorted(values.items())]
        return "\n".join([*lines, ""])


class CountedRequests:
    """ASGI middleware that counts the requests of one application."""

    def __init__(self, app: ASGIApp, *, catalog: str, counts: RequestCounts, monotonic: Callable[[], float]) -> None:
        self._app = app
        self._catalog = catalog
        self._counts = counts
        self._monotonic = monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = self._monotonic(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            # The router leaves the route in the scope. Any path and any method would make labels without end.
            route = scope.get("route")
            path = route.path if isinstance(route, Route) else _OTHER
            method = scope["method"] if scope["method"] in _METHODS else _OTHER
            self._counts.add(self._catalog, method, path, status, self._monotonic() - began)


def _labels(catalog: str, method: str, path: str, status: int) -> str:
    return f'{{catalog="{catalog}",method="{method}",path="{path}",status="{status}"}}'
