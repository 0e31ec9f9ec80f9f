"""Location of the tests' files: in memory if this machine has a memory disk with enough room.

A commit waits for the disk several times, for milliseconds each; a busy disk can stall for seconds, long enough for a
one-second lease to expire. Tests on a real disk do not prove durability across a power cut either.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["memory_disk"]

DISK = Path("/dev/shm")  # noqa: S108  each user's tests get a folder of their own there
MEMORY = Path("/proc/meminfo")
ROOM = 4 << 30
"""Required free space; a whole run leaves less than a tenth of it."""


def memory_disk(disk: Path = DISK, memory: Path = MEMORY, *, room: int = ROOM) -> Path | None:
    """Return the disk if it allows executables, supports the S3 server's file attributes, and has room; else None."""
    if not (disk.is_dir() and os.access(disk, os.W_OK) and memory.exists()):
        return None
    state = os.statvfs(disk)
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", memory.read_text(), re.MULTILINE)
    has_room = available is not None and int(available[1]) << 10 >= 2 * room and state.f_bavail * state.f_frsize >= room
    return disk if has_room and not state.f_flag & os.ST_NOEXEC and _knows_attributes(disk) else None


def _knows_attributes(disk: Path) -> bool:
    """Return whether files there support user-defined extended attributes."""
    probe = disk / f"dynamic-tables-{os.getpid()}"
    try:
        probe.touch()
        os.setxattr(probe, "user.probe", b"")
    except (OSError, AttributeError):
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True
