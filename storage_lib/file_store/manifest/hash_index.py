"""Codec of hash indexes: the keys in each bucket of a table with dynamic buckets (docs/format.md, 1.13).

One file per bucket: the hashes of its keys, four bytes each, big-endian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from storage_lib.errors import CorruptFileError

HASH = "HASH"
"""Type of these files in an index manifest."""

_STORED = np.dtype(">i4")


@dataclass(frozen=True, slots=True, kw_only=True)
class HashIndexFile:
    """New index file of a bucket, with the hashes of all its keys."""

    file_name: str
    size_bytes: int
    hash_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HashIndexChange:
    """Change of a bucket's index by a commit.

    ``file`` replaces the bucket's index file. ``replaces_partition``: the partition is overwritten, so the index files
    of its other buckets are dropped.
    """

    file: HashIndexFile | None = None
    replaces_partition: bool = False


def encode_hashes(hashes: npt.NDArray[np.int32]) -> bytes:
    """Return the content of the file."""
    return hashes.astype(_STORED).tobytes()


def decode_hashes(data: bytes, source: str) -> npt.NDArray[np.int32]:
    """Decode the hashes; raises ``CorruptFileError`` naming ``source`` if the file was truncated."""
    if len(data) % _STORED.itemsize:
        message = f"{source} has {len(data)} bytes, which is not a multiple of the size of a hash: it is truncated"
        raise CorruptFileError(message)
    return np.frombuffer(data, dtype=_STORED).astype(np.int32)
