"""Parts of an object that are built at their first use, once even if several threads use the object.

A part becomes an ordinary attribute of the object, so later uses cost nothing. Each part has a lock of its own, held
only while the part is built. A part may use other parts, of its object or of others: threads then take locks in the
order in which parts depend on each other, which cannot deadlock unless a part depends on itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock, RLock
from typing import Any, TypeVar, overload
from weakref import WeakValueDictionary

Part = TypeVar("Part")


class built_once(cached_property[Part]):  # noqa: N801  a decorator, named in the style of the one that it extends
    """``functools.cached_property`` that calls the method once per object, however many threads wait for the result.

    If the method raises, nothing is stored, and the next caller tries again. An object can be pickled and copied if its
    parts can: no lock is stored in it.
    """

    def __init__(self, build: Callable[[Any], Part]) -> None:
        super().__init__(build)
        self._guard = Lock()
        # By the object's id, and only while a thread builds this part of the object or waits for it.
        self._locks: WeakValueDictionary[int, RLock] = WeakValueDictionary()

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> built_once[Part]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Part: ...

    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> built_once[Part] | Part:
        """Return the part of ``instance``, or this descriptor for the class."""
        if instance is None:
            return self
        name, parts = str(self.attrname), vars(instance)
        with self._guard:
            lock = self._locks.setdefault(id(instance), RLock())
        # Reentrant, so that a part that depends on itself raises RecursionError instead of waiting.
        with lock:
            if name not in parts:
                parts[name] = self.func(instance)
            return parts[name]
