"""Rows that an Iceberg reader must not see: versions of a key that are not its row, deletions, and marked rows.

The table's own merge decides, over the key columns of files that share keys. A group of such files keeps its masks
until a file is added to it or removed from its keys. If files were only added, the versions of their keys are merged
again, and what the masks say about other keys stays; else the masks of the whole group are computed again. So a mask
depends only on the files that are live, whatever kind of commit changed them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap64

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.deletion_vector import bitmap_of
from storage_lib.file_store.read import FileStoreRead
from storage_lib.file_store.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBucket:
    """One bucket after a change: its live files, the names of those that are new, and those that were removed.

    ``is_whole``: the masks of all its files have to be computed again. ``mask_before`` returns that of a file that is
    not new, by its name; None if it is not known.
    """

    partition: bytes
    bucket: int
    files: Sequence[DataFileMeta]
    added: Collection[str]
    removed: Sequence[DataFileMeta] = ()
    is_whole: bool = False
    mask_before: Callable[[str], BitMap64 | None] = lambda _: None


def hidden_rows(
    read: FileStoreRead,
    changed: ChangedBucket,
    *,
    groups_of: Callable[[Sequence[DataFileMeta]], Sequence[Sequence[DataFileMeta]]],
    comparable_key: Callable[[bytes], ComparableKey],
) -> Iterator[tuple[str, BitMap64]]:
    """Yield file name and hidden positions of each file whose mask may have changed; an empty mask hides nothing.

    ``groups_of`` divides files into groups that share no key. Memory is that of ``standing_rows`` for one
    group. Raises as ``FileStoreRead.standing_rows``.
    """
    replaced = _masks_of_replaced(read, changed)
    if replaced is not None:
        yield from replaced.items()
        return
    gone = [(comparable_key(file.min_key), comparable_key(file.max_key)) for file in changed.removed]
    for group in groups_of(changed.files):
        is_cut = changed.is_whole or _shares_keys(group, gone, comparable_key)
        added = [file.file_name for file in group if file.file_name in changed.added]
        if not (is_cut or added):
            continue
        if len(group) == 1 and group[0].delete_row_count == 0 and group[0].deletion_file is None:
            yield group[0].file_name, BitMap64()
            continue
        masks = None if is_cut or len(added) == len(group) else _masks_after(read, changed, group, added)
        yield from (_masks(read, changed, group) if masks is None else masks).items()


def _masks_of_replaced(read: FileStoreRead, changed: ChangedBucket) -> Mapping[str, BitMap64] | None:
    """Return the masks of files with rows that the added files replaced; None to look at each group of files."""
    if changed.is_whole or changed.removed or len(changed.added) == len(changed.files):
        return None
    if any(file.deletion_file is not None for file in changed.files):
        return None
    replaced = read.hidden_by_added(_split(changed, changed.files), changed.added)
    if replaced is None:
        return None
    masks = {}
    for name, positions in replaced.items():
        before = BitMap64() if name in changed.added else changed.mask_before(name)
        if before is None:
            return None
        masks[name] = before | bitmap_of(positions)
    return masks


def _shares_keys(
    group: Sequence[DataFileMeta],
    gone: Sequence[tuple[ComparableKey, ComparableKey]],
    comparable_key: Callable[[bytes], ComparableKey],
) -> bool:
    bounds = [(comparable_key(file.min_key), comparable_key(file.max_key)) for file in group] if gone else []
    return any(low <= gone_high and gone_low <= high for low, high in bounds for gone_low, gone_high in gone)


def _masks_after(
    read: FileStoreRead, changed: ChangedBucket, group: Sequence[DataFileMeta], added: Sequence[str]
) -> Mapping[str, BitMap64] | None:
    """Return the masks of files with keys of the added ones, from those before; None to compute all again."""
    if any(file.deletion_file is not None for file in group):
        return None
    found = read.standing_of_added(_split(changed, group), added)
    masks = {}
    for each in found or ():
        before = BitMap64() if each.file_name in added else changed.mask_before(each.file_name)
        if before is None:
            return None
        masks[each.file_name] = (before - bitmap_of(each.stands)) | bitmap_of(each.hidden)
    return None if found is None else masks


def _masks(read: FileStoreRead, changed: ChangedBucket, group: Sequence[DataFileMeta]) -> Mapping[str, BitMap64]:
    masks = {file.file_name: BitMap64() for file in group}
    for rows in read.standing_rows(_split(changed, group)):
        masks[rows.file_name] |= bitmap_of(np.flatnonzero(~rows.stands) + rows.start)
    return masks


def _split(changed: ChangedBucket, group: Sequence[DataFileMeta]) -> Split:
    return Split(snapshot_id=0, partition=changed.partition, bucket=changed.bucket, files=tuple(group))
