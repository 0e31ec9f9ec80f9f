"""A cached answer of a server that may be slow: asked again in the background by each request, one query at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["SlowLook"]

_Answer = TypeVar("_Answer")


class SlowLook(Generic[_Answer]):
    """Asks by ``ask``, which does not raise; ``first`` is the answer until there is one."""

    def __init__(self, ask: Callable[[], _Answer], first: _Answer) -> None:
        self._ask = ask
        self._last = first
        self._asking: Future[_Answer] | None = None

    def last(self, threads: ThreadPoolExecutor) -> _Answer:
        """Return the newest answer that is there, and ask for the next one."""
        if self._asking is not None and self._asking.done():
            self._last, self._asking = self._asking.result(), None
        if self._asking is None:
            self._asking = threads.submit(self._ask)
        return self._last
