"""Rows that an Iceberg reader must not see: versions of a key that are not its row, deletions, and marked rows.

The table's own merge decides, over the key columns of files that share keys. A group of such files keeps its masks
until a file is added to it or removed from its keys: then the masks of the whole group are computed again. So a mask
depends only on the files that are live, whatever kind of commit changed them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap64

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.read import FileStoreRead
from storage_lib.file_store.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBucket:
    """One bucket after a change: its live files, the names of those that are new, and those that were removed.

    ``is_whole``: the masks of all its files have to be computed again.
    """

    partition: bytes
    bucket: int
    files: Sequence[DataFileMeta]
    added: Collection[str]
    removed: Sequence[DataFileMeta] = ()
    is_whole: bool = False


def hidden_rows(
    read: FileStoreRead,
    changed: ChangedBucket,
    *,
    groups: Sequence[Sequence[DataFileMeta]],
    comparable_key: Callable[[bytes], ComparableKey],
) -> Iterator[tuple[str, BitMap64]]:
    """Yield file name and hidden positions of each file whose mask may have changed; an empty mask hides nothing.

    ``groups`` divide the bucket's files into those that share no key. Memory is that of ``standing_rows`` for one
    group. Raises as ``FileStoreRead.standing_rows``.
    """
    gone = [(comparable_key(file.min_key), comparable_key(file.max_key)) for file in changed.removed]
    for group in groups:
        if not (changed.is_whole or _is_touched(group, changed.added, gone, comparable_key)):
            continue
        if len(group) == 1 and group[0].delete_row_count == 0 and group[0].deletion_file is None:
            yield group[0].file_name, BitMap64()
            continue
        yield from _masks(read, changed, group).items()


def _is_touched(
    group: Sequence[DataFileMeta],
    added: Collection[str],
    gone: Sequence[tuple[ComparableKey, ComparableKey]],
    comparable_key: Callable[[bytes], ComparableKey],
) -> bool:
    if any(file.file_name in added for file in group):
        return True
    bounds = [(comparable_key(file.min_key), comparable_key(file.max_key)) for file in group] if gone else []
    return any(low <= gone_high and gone_low <= high for low, high in bounds for gone_low, gone_high in gone)


def _masks(read: FileStoreRead, changed: ChangedBucket, group: Sequence[DataFileMeta]) -> Mapping[str, BitMap64]:
    masks = {file.file_name: BitMap64() for file in group}
    split = Split(snapshot_id=0, partition=changed.partition, bucket=changed.bucket, files=tuple(group))
    for rows in read.standing_rows(split):
        hidden = np.flatnonzero(~rows.stands) + rows.start
        masks[rows.file_name] |= BitMap64(hidden.astype(np.uint64))
    return masks
