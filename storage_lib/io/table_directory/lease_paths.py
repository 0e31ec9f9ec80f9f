"""Paths in a table's lease directory, and the state that its listing shows (docs/format.md, 1.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LEASE = "lease-"
_RELEASED = "released-"
_BEAT = "beat-"
_WAITING = "waiting-"
_NUMBERED = re.compile(f"({_LEASE}|{_RELEASED}|{_BEAT})([0-9]+)")


@dataclass(frozen=True, slots=True)
class LeasePaths:
    """Paths of a table's lease files, all in ``directory`` (without a trailing slash)."""

    directory: str

    def lease(self, number: int) -> str:
        """Path of the file that records the holder and purpose of lease ``number``."""
        return f"{self.directory}/{_LEASE}{number}"

    def released(self, number: int) -> str:
        """Path of the file that exists once lease ``number`` was released."""
        return f"{self.directory}/{_RELEASED}{number}"

    def beat(self, number: int) -> str:
        """Path of the file that the holder of lease ``number`` rewrites as a heartbeat."""
        return f"{self.directory}/{_BEAT}{number}"

    def waiting(self, name: str) -> str:
        """Path of a waiting writer's ticket; ``name`` must be unique."""
        return f"{self.directory}/{_WAITING}{name}"

    def listing(self, names: Iterable[str]) -> LeaseListing:
        """Parse the names of the directory's entries."""
        leases: list[int] = []
        released: set[int] = set()
        tickets: list[str] = []
        numbered: list[tuple[int, str]] = []
        for name in names:
            if is_ticket(name):
                tickets.append(f"{self.directory}/{name}")
            found = _NUMBERED.fullmatch(name)
            if found is None:
                continue
            prefix, number = found[1], int(found[2])
            numbered.append((number, f"{self.directory}/{name}"))
            if prefix == _LEASE:
                leases.append(number)
            elif prefix == _RELEASED:
                released.add(number)
        newest = max(leases, default=None)
        return LeaseListing(
            newest=newest, is_released=newest in released, tickets=tuple(tickets), numbered=tuple(numbered)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseListing:
    """State of the lease directory at one moment.

    ``newest`` is the highest number of a lease, None before the first lease; ``is_released`` tells whether that lease
    was released. ``tickets`` are the paths of waiting writers' tickets, ``numbered`` all other files, each with the
    number of its lease.
    """

    newest: int | None
    is_released: bool
    tickets: tuple[str, ...]
    numbered: tuple[tuple[int, str], ...]


def is_ticket(file_name: str) -> bool:
    """Whether an entry of the lease directory is the ticket of a waiting writer."""
    return file_name.startswith(_WAITING)


def number_after(prefix: str, name: str) -> int | None:
    """Return the number in ``<prefix><number>``; None for other names."""
    digits = name.removeprefix(prefix)
    is_number = name.startswith(prefix) and digits.isascii() and digits.isdigit()
    return int(digits) if is_number else None
