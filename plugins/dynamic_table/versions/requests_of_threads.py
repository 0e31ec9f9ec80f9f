"""Requests that threads of a triggerer send to its supervisor: for connections, and to mask secrets.

Airflow 3.1 sends each in an event loop of the calling thread, and reads the answer there, although the stream and its
lock belong to the loop of the triggers. Of two requests at the same time, one may read the other's answer, which ends
the triggerer with all its triggers. Later versions hand the request to the triggers' loop; so does this module.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow.sdk.execution_time import task_runner

from dynamic_table.versions.airflow_feature import AirflowFeature

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["let_threads_send"]

_OF_TRIGGERERS = "TriggerCommsDecoder"
_originals: dict[type[Any], Callable[[Any, Any], Any]] = {}
_changed: WeakKeyDictionary[AbstractEventLoop, type[Any]] = WeakKeyDictionary()


def let_threads_send(loop: AbstractEventLoop) -> None:
    """Send requests of threads in ``loop``, the running one, which is that of the triggers in this process.

    Does nothing outside of a triggerer, and in versions that do the same.
    """
    if AirflowFeature.REQUESTS_OF_THREADS.is_here or loop in _changed:
        return
    kind: Any = type(getattr(task_runner, "SUPERVISOR_COMMS", None))
    if kind.__name__ != _OF_TRIGGERERS:
        return
    # Its objects have slots, so that only the class can be changed; a process has one of them.
    kind.send = _sending_in(loop, _originals.setdefault(kind, kind.send))
    _changed[loop] = kind


def _sending_in(loop: AbstractEventLoop, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    thread_of_loop = threading.get_ident()

    def send(self: Any, msg: Any) -> Any:
        if threading.get_ident() == thread_of_loop:
            return original(self, msg)
        return asyncio.run_coroutine_threadsafe(self.asend(msg), loop).result()

    return send
