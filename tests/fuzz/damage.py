"""Random damage to bytes, from a seed: bad disks, truncated copies, hostile writers."""

from __future__ import annotations

import random


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return ``data`` with small or large damage."""
    match chance.randrange(8):
        case 0 | 1 | 2:
            return _flipped(data, chance, chance.choice((1, 1, 2, 8)))
        case 3:
            return data[: chance.randrange(len(data) + 1)]
        case 4:
            return data + chance.randbytes(chance.choice((1, 16, 300)))
        case 5:
            start = chance.randrange(len(data) + 1)
            return data[:start] + bytes(min(chance.randrange(1, 65), len(data) - start)) + data[start + 64 :]
        case 6:
            start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
            return data[:start] + data[end:]
        case _:
            start = chance.randrange(len(data) + 1)
            return data[:start] + chance.choice((b"\xff" * 9, b"\x80" * 10, b"\x00", b"{", b"[" * 2000)) + data[start:]


def _flipped(data: bytes, chance: random.Random, count: int) -> bytes:
    changed = bytearray(data)
    for _ in range(count if changed else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)
