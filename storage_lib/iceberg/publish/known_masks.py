"""Masks that a view has published: decoded ones are kept, since the next commit often adds to them."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from storage_lib.errors import CorruptFileError, NotFoundError
from storage_lib.file_store.data_file.deletion_vector import read_deletion_vector
from storage_lib.iceberg.encode.iceberg_manifest import ListedFile
from storage_lib.iceberg.publish.view_directory import ViewDirectory

_BYTES_MAX = 16 << 20
_OVERHEAD_BYTES = 500


class KnownMasks:
    """Masks by the path of their Puffin file, which is immutable; the least recently used are dropped. Thread-safe."""

    def __init__(self, directory: ViewDirectory, bytes_max: int = _BYTES_MAX) -> None:
        self._directory = directory
        self._bytes_max = bytes_max
        self._bytes = 0
        self._masks: OrderedDict[str, tuple[BitMap64, int]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, vector: ListedFile) -> BitMap64 | None:
        """Return a vector's mask, not to be changed; None if its file is missing or damaged."""
        with self._lock:
            known = self._masks.get(vector.path)
            if known is not None:
                self._masks.move_to_end(vector.path)
                return known[0]
        try:
            source = pa.BufferReader(self._directory.read(vector.path))
            mask = BitMap64(read_deletion_vector(source, vector.offset or 0, vector.path).astype(np.uint64))
        except (NotFoundError, CorruptFileError):
            return None
        self.keep(vector.path, mask, vector.size_bytes)
        return mask

    def keep(self, path: str, mask: BitMap64, size_bytes: int) -> None:
        """Keep the mask of a Puffin file of this size."""
        with self._lock:
            if path in self._masks:
                return
            self._masks[path] = mask, size_bytes + _OVERHEAD_BYTES
            self._bytes += size_bytes + _OVERHEAD_BYTES
            while self._bytes > self._bytes_max:
                _, (_, size) = self._masks.popitem(last=False)
                self._bytes -= size
