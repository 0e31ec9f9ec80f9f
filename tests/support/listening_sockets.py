"""Addresses on which the processes of a tree listen, from /proc."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from pathlib import Path

__all__ = ["is_loopback", "listening", "tree_of"]

LISTENS = "0A"


def listening(pids: set[int]) -> set[tuple[str, int]]:
    """Return the address and port of every TCP socket on which one of these processes listens."""
    inodes = {inode for pid in pids for inode in _sockets_of(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in inodes:
                address, port = fields[1].split(":")
                found.add((_address(address), int(port, 16)))
    return found


def is_loopback(address: str) -> bool:
    """Return whether the address is reachable from this machine only."""
    parsed = ipaddress.ip_address(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def tree_of(root: int) -> set[int]:
    """Return the ids of a process and all its current descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _sockets_of(pid: int) -> list[str]:
    links = []
    with suppress(OSError):  # the process has ended, or is another user's
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed in the meantime, like the descriptor of this listing
                links.append(str(each.readlink()))
    return [link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")]


def _address(text: str) -> str:
    """Parse an address; the kernel writes four-byte words in native byte order."""
    raw = bytes.fromhex(text)
    return str(ipaddress.ip_address(b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))))
