"""Threads for the triggers' blocking calls, in groups that cannot starve each other.

Airflow runs all triggers of a triggerer in one event loop, whose default pool has a few threads: sensors of a store
that hangs would occupy all of them, and neither another store's sensors nor the supervision of sinks would go on. So
each connection and the sinks have a group of their own, with a limit of calls at a time.

A call that takes too long is abandoned: its trigger goes on, and its thread, a daemon, does not keep the triggerer from
ending. Too many abandoned calls that have not returned yet keep a group from starting further ones.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from dynamic_table.versions.requests_of_threads import let_threads_send

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from airflow.sdk.types import Logger

__all__ = ["ABANDONED_MAX", "CALLS_MAX", "CALL_SECONDS_MAX", "CallTimeoutError", "in_own_thread", "looked"]

Result = TypeVar("Result")

CALLS_MAX = 4
ABANDONED_MAX = 32
CALL_SECONDS_MAX = 120.0


class CallTimeoutError(Exception):
    """A call has not returned in time; it may succeed later."""


class _Group:
    """The calls of one group in one event loop."""

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(CALLS_MAX)
        self.abandoned = 0

    def abandon(self, answer: asyncio.Future[Any]) -> None:
        """Count a call until it returns."""
        self.abandoned += 1
        answer.add_done_callback(self._returned)

    def _returned(self, answer: asyncio.Future[Any]) -> None:
        self.abandoned -= 1
        answer.exception()  # asyncio would log an exception that nobody retrieves


_groups: WeakKeyDictionary[AbstractEventLoop, dict[str, _Group]] = WeakKeyDictionary()


async def in_own_thread(
    group: str, call: Callable[..., Result], *arguments: Any, seconds_max: float = CALL_SECONDS_MAX
) -> Result:
    """Return ``call(*arguments)``, run in a thread of ``group`` once fewer than `CALLS_MAX` of its calls run.

    Raises what the call raises, and CallTimeoutError if it has not returned after ``seconds_max``, or at once if
    `ABANDONED_MAX` calls of the group have not returned.
    """
    loop = asyncio.get_running_loop()
    let_threads_send(loop)
    found = _groups.setdefault(loop, {}).setdefault(group, _Group())
    async with found.slots:
        if found.abandoned >= ABANDONED_MAX:
            message = f"{found.abandoned} earlier calls of {group} have not returned"
            raise CallTimeoutError(message)
        answer: asyncio.Future[Result] = loop.create_future()
        thread = threading.Thread(target=_run, args=(loop, answer, call, arguments), name=group, daemon=True)
        thread.start()
        try:
            return await asyncio.wait_for(asyncio.shield(answer), seconds_max)
        except TimeoutError as late:
            if answer.done():  # the error is the call's own
                return answer.result()
            message = f"a call of {group} has not returned within {seconds_max:g} s"
            raise CallTimeoutError(message) from late
        finally:
            if not answer.done():
                found.abandon(answer)


async def looked(
    group: str,
    look: Callable[..., Result],
    *arguments: Any,
    late: Result,
    log: Logger,
    subject: str,
) -> Result:
    """Return ``look(*arguments)`` as ``in_own_thread``; ``late``, with a warning about ``subject``, if it is late."""
    try:
        return await in_own_thread(group, look, *arguments)
    except CallTimeoutError as error:
        log.warning("%s can't be read now: %s", subject, error)
        return late


def _run(
    loop: AbstractEventLoop, answer: asyncio.Future[Any], call: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    result, error = None, None
    try:
        result = call(*arguments)
    except BaseException as raised:  # noqa: BLE001  raised again where the call is awaited
        error = raised
    with suppress(RuntimeError):  # the loop is closed: nobody waits for the answer
        loop.call_soon_threadsafe(_answer, answer, result, error)


def _answer(answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
