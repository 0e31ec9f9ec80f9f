"""A deletion vector in the log itself, as Z85 text (https://rfc.zeromq.org/spec/32/).

The Puffin files of the Iceberg view have the same bitmaps, but readers of Delta refuse files that do not begin with
their own version byte.
"""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap64

from storage_lib.iceberg.encode.puffin_vector import vector_of

_DIGITS = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", np.uint8
)
_POWERS = 85 ** np.arange(4, -1, -1, dtype=np.uint32)
_GROUP = 4


def inline_vector(rows: BitMap64) -> dict[str, object]:
    """Return Delta's descriptor of the vector that hides ``rows``."""
    body = vector_of(rows)
    return {"storageType": "i", "pathOrInlineDv": z85(body), "sizeInBytes": len(body), "cardinality": len(rows)}


def z85(data: bytes) -> str:
    """Return bytes as Z85, filled up with zeros to whole groups of four."""
    padded = data + bytes(-len(data) % _GROUP)
    numbers = np.frombuffer(padded, ">u4").astype(np.uint32)
    digits = numbers[:, np.newaxis] // _POWERS % 85
    return bytes(_DIGITS[digits].ravel()).decode("ascii")
