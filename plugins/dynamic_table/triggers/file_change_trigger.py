"""Trigger that waits until a file is modified; the task then reads the content."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from dynamic_table.triggers.deferral_trigger import DeferralTrigger
from dynamic_table.triggers.own_threads import CallTimeoutError, in_own_thread

__all__ = ["FileChangeTrigger", "file_stamp"]


def file_stamp(path: Path) -> str:
    """Return a stamp that changes when the file does; empty if the file does not exist."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_ino}/{found.st_size}/{found.st_mtime_ns}"


class FileChangeTrigger(DeferralTrigger):
    """Fires once, when the file's stamp differs from ``stamp`` or after ``look_seconds``.

    :param path: the file; a missing file has a stamp as well.
    :param stamp: the known stamp.
    :param poll_seconds: seconds between checks.
    :param look_seconds: seconds after which to fire in any case.
    """

    def __init__(self, *, path: str, stamp: str, poll_seconds: float, look_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.path = path
        self.stamp = stamp
        self.poll_seconds = poll_seconds
        self.look_seconds = look_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that recreate this trigger."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "path": self.path,
                "stamp": self.stamp,
                "poll_seconds": self.poll_seconds,
                "look_seconds": self.look_seconds,
            },
        )

    async def wait(self) -> dict[str, Any]:
        """Poll until the stamp differs or ``look_seconds`` have passed."""
        deadline = time.monotonic() + self.look_seconds
        stamp = self.stamp
        while stamp == self.stamp and time.monotonic() < deadline:
            await asyncio.sleep(self.poll_seconds)
            with suppress(CallTimeoutError):
                stamp = await in_own_thread("declaration files", file_stamp, Path(self.path))
        return {"path": self.path}
