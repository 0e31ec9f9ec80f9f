"""Where the files of tests lie: in memory, if this machine has a disk of that kind and room on it.

A commit waits for the disk several times, for milliseconds each; on a machine whose disk is busy for seconds, and a
lease of one second is over meanwhile. That data outlives a power cut is nothing that a test on a disk shows either.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["memory_disk"]

DISK = Path("/dev/shm")  # noqa: S108  each user's tests get a folder of their own there
MEMORY = Path("/proc/meminfo")
ROOM = 4 << 30
"""A whole run leaves less than a tenth of it."""


def memory_disk(disk: Path = DISK, memory: Path = MEMORY, *, room: int = ROOM) -> Path | None:
    """Return the disk if programs may be run from it, the S3 server can note things at its files, and there is room."""
    if not (disk.is_dir() and os.access(disk, os.W_OK) and memory.exists()):
        return None
    state = os.statvfs(disk)
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", memory.read_text(), re.MULTILINE)
    has_room = available is not None and int(available[1]) << 10 >= 2 * room and state.f_bavail * state.f_frsize >= room
    return disk if has_room and not state.f_flag & os.ST_NOEXEC and _knows_attributes(disk) else None


def _knows_attributes(disk: Path) -> bool:
    """Whether files there may bear attributes of a user's choice."""
    probe = disk / f"dynamic-tables-{os.getpid()}"
    try:
        probe.touch()
        os.setxattr(probe, "user.probe", b"")
    except (OSError, AttributeError):
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True
