"""A deletion vector in the log itself, as Z85 text (https://rfc.zeromq.org/spec/32/).

The Puffin files of the Iceberg view have the same bitmaps, but readers of Delta refuse files that do not begin with
their own version byte.
"""

from __future__ import annotations

import numpy as np

from storage_lib.file_store.data_file.deletion_vector import CHECKSUM_BYTES, SIZE_BYTES

_DIGITS = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", np.uint8
)
_POWERS = 85 ** np.arange(4, -1, -1, dtype=np.uint32)
_GROUP = 4


def inline_vector(blob: bytes, row_count: int) -> dict[str, object]:
    """Return Delta's descriptor of the vector in the ``blob`` of a Puffin file, of ``row_count`` hidden rows."""
    body = blob[SIZE_BYTES:-CHECKSUM_BYTES]
    return {"storageType": "i", "pathOrInlineDv": z85(body), "sizeInBytes": len(body), "cardinality": row_count}


def z85(data: bytes) -> str:
    """Return bytes as Z85, filled up with zeros to whole groups of four."""
    padded = data + bytes(-len(data) % _GROUP)
    numbers = np.frombuffer(padded, ">u4").astype(np.uint32)
    digits = numbers[:, np.newaxis] // _POWERS % 85
    return bytes(_DIGITS[digits].ravel()).decode("ascii")
