"""Deletion vectors of Delta Lake, which delta-rs reads and does not write."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from pyroaring import BitMap

__all__ = ["inline_vector", "mask_rows"]


def mask_rows(table: Path, version: int, path: str, positions: list[int]) -> None:
    """Commit ``version`` of a table of Delta Lake: rows of one of its files, by their places, are deleted."""
    added = next(
        action["add"]
        for log in sorted((table / "_delta_log").glob("*.json"), reverse=True)
        for action in map(json.loads, log.read_text(encoding="utf-8").splitlines())
        if action.get("add", {}).get("path") == path
    )
    gone = {key: added[key] for key in ("path", "deletionVector") if key in added}
    vector = {"storageType": "i", **inline_vector(positions)}
    commit = [
        {"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "DELETE"}},
        {"remove": {**gone, "deletionTimestamp": 0, "dataChange": True}},
        {"add": {**added, "dataChange": True, "deletionVector": vector}},
    ]
    (table / "_delta_log" / f"{version:020}.json").write_text("\n".join(map(json.dumps, commit)), encoding="utf-8")


def inline_vector(positions: list[int]) -> dict[str, Any]:
    """Return a deletion vector as Delta's protocol writes it into a commit: a 64-bit Roaring array in Z85."""
    data = struct.pack("<IQI", 1681511377, 1, 0) + BitMap(positions).serialize()
    size = len(data)
    return {"pathOrInlineDv": z85(data + b"\0" * (-size % 4)), "sizeInBytes": size, "cardinality": len(positions)}


def z85(data: bytes) -> str:
    """Encode bytes as ZeroMQ's RFC 32 does; Python has that from 3.13 on."""
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(letters[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))
