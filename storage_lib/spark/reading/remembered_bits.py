"""What this process remembers of merged keys: the bits of buckets, and which buckets were asked for."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib.table.read.left_out_rows import LeftOutRows

_WANTED_MAX = 10_000
_FILE_BYTES = 512
"""Estimate of what Python needs for a file, without its bits and its name."""


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """A bucket with some files. ``files`` is a digest of their names."""

    table: str
    partition: bytes
    bucket: int
    files: bytes

    @classmethod
    def of(cls, table: str, partition: bytes, bucket: int, names: Iterable[str]) -> BucketFiles:
        """Return the bucket of a table, given by its uuid, with files of these names."""
        return cls(table, partition, bucket, hashlib.blake2b("\n".join(sorted(names)).encode()).digest())


class RememberedBits:
    """Bits of the files of the buckets that were read last, up to about ``bytes_max``. Threads may share it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._found: OrderedDict[BucketFiles, Mapping[str, LeftOutRows]] = OrderedDict()
        self._size = 0
        self._wanted: OrderedDict[BucketFiles, None] = OrderedDict()

    def get(self, bucket: BucketFiles) -> Mapping[str, LeftOutRows] | None:
        """Return the bits of a bucket's files by name; None if they are not remembered."""
        with self._lock:
            found = self._found.get(bucket)
            if found is not None:
                self._found.move_to_end(bucket)
            return found

    def put(self, bucket: BucketFiles, rows: Mapping[str, LeftOutRows]) -> None:
        """Remember the bits of a bucket, and forget those that were used longest ago."""
        with self._lock:
            self._size -= _size(self._found.pop(bucket, {}))
            self._found[bucket] = rows
            self._size += _size(rows)
            while self._size > self._bytes_max and len(self._found) > 1:
                self._size -= _size(self._found.popitem(last=False)[1])

    def is_wanted(self, bucket: BucketFiles) -> bool:
        """Return whether the bucket was asked for."""
        with self._lock:
            return bucket in self._wanted

    def want(self, bucket: BucketFiles) -> None:
        """Ask for a bucket."""
        with self._lock:
            self._wanted[bucket] = None
            self._wanted.move_to_end(bucket)
            while len(self._wanted) > _WANTED_MAX:
                self._wanted.popitem(last=False)


def _size(rows: Mapping[str, LeftOutRows]) -> int:
    return sum(each.bits.nbytes + len(name) + _FILE_BYTES for name, each in rows.items())
