"""Records that an operator has chosen to skip: option ``source.skip``, such as ``0:1234, 3:77`` (partition:offset)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.source_options import SKIP

if TYPE_CHECKING:
    from collections.abc import Collection

    from storage_lib.log_store.codec.log_columns import LogColumns

_PLACE = re.compile(r"\s*(\d{1,9}):(\d{1,18})\s*")


def skipped_offsets(text: str | None) -> frozenset[tuple[int, int]]:
    """Parse partitions and offsets; ``InvalidInputError`` for other text."""
    if text is None:
        return frozenset()
    found = [_PLACE.fullmatch(each) for each in text.split(",")]
    if not all(found):
        message = f"option {SKIP} is {text!r}; give partitions and offsets, such as 0:1234, or 0:1234, 3:77"
        raise InvalidInputError(message)
    return frozenset((int(each[1]), int(each[2])) for each in found if each is not None)


def places_of(skipped: Collection[tuple[int, int]], bucket: int, columns: LogColumns) -> np.ndarray:
    """Return the indices of the records that are to be skipped."""
    offsets = [offset for partition, offset in skipped if partition == bucket]
    return np.flatnonzero(np.isin(columns.offsets, offsets)) if offsets else np.zeros(0, np.int64)
