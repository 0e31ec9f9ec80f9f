"""Keys of data files that are not of one integer column, kept in memory for searches; see also ``key_cache.py``."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.merge_keys import MergeKeys

_PACKED_SHARE = 1 / 4
"""Largest size of a kept file, as a share of the memory: its keys may be several times as large when decoded."""
_OVERHEAD_BYTES = 1_000


class KnownKeys:
    """Keys by the name of their file, up to ``bytes_max`` bytes in total. Threads may share it."""

    def __init__(self, bytes_max: int) -> None:
        self.packed_bytes_max = int(bytes_max * _PACKED_SHARE)
        self._bytes_max = bytes_max
        self._bytes = 0
        self._files: OrderedDict[str, MergeKeys] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, file: DataFileMeta, read: Callable[[], MergeKeys]) -> MergeKeys:
        """Return all keys of a file, which ``read`` returns if they are not known."""
        with self._lock:
            known = self._files.get(file.file_name)
            if known is not None:
                self._files.move_to_end(file.file_name)
                return known
        keys = read()
        with self._lock:
            if file.file_name not in self._files:
                self._files[file.file_name] = keys
                self._bytes += keys.nbytes + _OVERHEAD_BYTES
            while self._bytes > self._bytes_max:
                _, oldest = self._files.popitem(last=False)
                self._bytes -= oldest.nbytes + _OVERHEAD_BYTES
        return keys
