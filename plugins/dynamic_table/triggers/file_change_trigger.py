"""Waits in the triggerer until a file is touched; what is in it is for the task to read."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from dynamic_table.triggers.deferral_trigger import DeferralTrigger

__all__ = ["FileChangeTrigger", "file_stamp"]


def file_stamp(path: Path) -> str:
    """Return what changes when the file does; nothing where there is none."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_ino}/{found.st_size}/{found.st_mtime_ns}"


class FileChangeTrigger(DeferralTrigger):
    """Fires once, when the file has another stamp or after ``look_seconds``.

    :param path: the file; one that is not there has a stamp, too.
    :param stamp: the stamp that it had.
    :param poll_seconds: how often to look.
    :param look_seconds: fire after so long in any case.
    """

    def __init__(self, *, path: str, stamp: str, poll_seconds: float, look_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.path = path
        self.stamp = stamp
        self.poll_seconds = poll_seconds
        self.look_seconds = look_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what builds this trigger again."""
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
        """Look until it is another."""
        deadline = time.monotonic() + self.look_seconds
        stamp = self.stamp
        while stamp == self.stamp and time.monotonic() < deadline:
            await asyncio.sleep(self.poll_seconds)
            stamp = await asyncio.to_thread(file_stamp, Path(self.path))
        return {"path": self.path}
