"""Masks that a view has published: decoded ones are kept, since the next commit often adds to them."""

from __future__ import annotations

import threading
from collections import OrderedDict

from pyroaring import BitMap64

from storage_lib.errors import CorruptFileError, NotFoundError
from storage_lib.iceberg.encode.delete_file import decode_delete_file
from storage_lib.iceberg.encode.iceberg_manifest import ListedFile
from storage_lib.iceberg.publish.view_directory import ViewDirectory

_BYTES_MAX = 16 << 20
_OVERHEAD_BYTES = 500


class KnownMasks:
    """Masks by the path of their delete file, which is immutable; the least recently used are dropped. Thread-safe."""

    def __init__(self, directory: ViewDirectory, bytes_max: int = _BYTES_MAX) -> None:
        self._directory = directory
        self._bytes_max = bytes_max
        self._bytes = 0
        self._masks: OrderedDict[str, tuple[BitMap64, int]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, delete_file: ListedFile) -> BitMap64 | None:
        """Return a delete file's mask, not to be changed; None if it is missing or damaged."""
        with self._lock:
            known = self._masks.get(delete_file.path)
            if known is not None:
                self._masks.move_to_end(delete_file.path)
                return known[0]
        try:
            mask = decode_delete_file(self._directory.read(delete_file.path), delete_file.offset, delete_file.path)
        except (NotFoundError, CorruptFileError):
            return None
        self.keep(delete_file.path, mask, delete_file.size_bytes)
        return mask

    def keep(self, path: str, mask: BitMap64, size_bytes: int) -> None:
        """Keep the mask of a delete file of this size."""
        with self._lock:
            if path in self._masks:
                return
            self._masks[path] = mask, size_bytes + _OVERHEAD_BYTES
            self._bytes += size_bytes + _OVERHEAD_BYTES
            while self._bytes > self._bytes_max:
                _, (_, size) = self._masks.popitem(last=False)
                self._bytes -= size
