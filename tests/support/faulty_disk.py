"""Disk that fails at the n-th system call: full, over its quota, unreadable, or mounted read-only.

``FaultyFileIO`` wraps ``LocalFileIO``; this class works below it, with real files and the system's own errors.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error codes of calls that need space."""
READ_ONLY = errno.EROFS
UNREADABLE = errno.EIO

_MAKES = os.O_CREAT
_CHANGES = ("write", "fsync", "link", "replace", "unlink", "mkdir", "rename", "rmdir")
_NEEDS_ROOM = ("write", "fsync", "link", "replace", "mkdir", "rename")
_READS = ("open", "scandir", "lstat", "stat")
CALLS = (*_CHANGES, *_READS)


@dataclass
class FaultyDisk:
    """Fails at call ``at`` (from 1; 0: never) that can return ``code``; with ``stays``, at all later calls as well."""

    root: str
    at: int = 0
    code: int = UNREADABLE
    stays: bool = False
    count: int = 0
    struck: list[str] = field(default_factory=list)
    _descriptors: set[int] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def mounted(self) -> Iterator[FaultyDisk]:
        """Patch ``os`` so that every call of this process below the root passes through this disk."""
        real = {name: getattr(os, name) for name in CALLS}
        try:
            for name, call in real.items():
                setattr(os, name, self._breaking(name, call))
            yield self
        finally:
            for name, call in real.items():
                setattr(os, name, call)

    def _breaking(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def breaking(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                if self._concerns(arguments, named) and self._can_fail(name, arguments):
                    self.count += 1
                    if self.count == self.at or (self.stays and 0 < self.at <= self.count):
                        self.struck.append(f"{name}{arguments[:2]}")
                        raise OSError(self.code, os.strerror(self.code), str(arguments[0]))
            answer = call(*arguments, **named)
            if name == "open" and self._concerns(arguments, named):
                self._descriptors.add(answer)
            return answer

        return breaking

    def _concerns(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
        for each in (*arguments[:2], named.get("dir_fd")):
            if isinstance(each, str | os.PathLike) and os.fspath(each).startswith(self.root):
                return True
            if isinstance(each, int) and each in self._descriptors:
                return True
        return False

    def _can_fail(self, name: str, arguments: tuple[Any, ...]) -> bool:
        makes = name == "open" and len(arguments) > 1 and isinstance(arguments[1], int) and bool(arguments[1] & _MAKES)
        if self.code in FULL:
            return makes or name in _NEEDS_ROOM
        if self.code == READ_ONLY:
            return makes or name in _CHANGES
        return True
