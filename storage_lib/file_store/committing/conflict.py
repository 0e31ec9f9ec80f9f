"""Conflict rules: when a commit may not follow the commits before it; pure functions (docs/format.md, 1.15).

    1  a deleted file must be live, with the same         else another commit compacted or overwrote it,
       rows marked as deleted                             or marked rows that would reappear
    2  an added file must not be live already             else the same messages are committed twice
    3  a partition keeps its number of buckets            else readers would miss rows; an overwrite may change it
    4  at each level from 1 up, key ranges are disjoint   else readers would show duplicates
    5  a compaction that marks rows knew the whole bucket else rows that it should have marked would reappear
    6  files that a compaction looked rows up in are live else an overwrite removed rows that it merged with

An append only adds files at level 0, so rules 1 and 4 to 6 never apply to it: it never fails because of a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from storage_lib.errors import CommitConflictError, InvalidInputError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.index_manifest import Bucket
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.merge_tree.increment import BucketVectors
from storage_lib.file_store.planning.live_files import LiveFiles

ComparableKeyOf: TypeAlias = Callable[[bytes], Any]
"""Convert a serialized key to a value that compares in key order."""


def check_no_conflict(
    live: LiveFiles,
    changes: Sequence[ManifestEntry],
    *,
    comparable_key: ComparableKeyOf | None,
    is_overwrite: bool,
    subject: str,
) -> None:
    """Raise if ``changes`` may not follow the snapshot whose files are ``live``; ``subject`` names both in messages.

    Without ``comparable_key`` runs may overlap, and rule 4 is skipped. ``live`` has to be complete for the partitions
    that ``changes`` touch; it may lack others.
    Raises ``CommitConflictError`` for changes by other commits, ``InvalidInputError`` for mistakes of the caller.
    """
    _check_deleted_are_live(live, changes, subject)
    added = [entry for entry in changes if entry.kind is FileKind.ADD]
    _check_added_are_new(live, added, subject)
    if not is_overwrite:
        _check_bucket_counts(live, added, subject)
    if comparable_key is None:
        return
    upper = _upper_buckets(added)
    if not upper:
        return
    after = live.apply(changes)
    for partition, bucket in upper:
        _check_disjoint(after.of(partition, bucket), comparable_key, f"{subject}, bucket {bucket}")


def check_vectors_are_whole(live: LiveFiles, vectors: Mapping[Bucket, BucketVectors], *, subject: str) -> None:
    """Raise ``CommitConflictError`` if a compaction that marked rows did not know all files of its bucket.

    A new file at level 1 or deeper, or a changed deletion vector, comes from another compaction.
    """
    for (partition, bucket), each in vectors.items():
        there = {(e.file.identity, e.file.deletion_file) for e in live.of(partition, bucket) if e.file.level > 0}
        if there != {(file.identity, file.deletion_file) for file in each.seen}:
            message = (
                f"{subject}, bucket {bucket}: another compaction changed the files or marked rows in them meanwhile. "
                "Nothing of this commit is left; run it again"
            )
            raise CommitConflictError(message)


def check_looked_up_are_live(live: LiveFiles, looked_up: Sequence[ManifestEntry], *, subject: str) -> None:
    """Raise ``CommitConflictError`` if a file whose rows a compaction looked up is no longer live or has changed."""
    for entry in live.changed(looked_up):
        message = (
            f"{subject}, bucket {entry.bucket}: the compaction merged its rows with those of "
            f"{entry.file.file_name}, which another commit replaced meanwhile. Nothing of this commit is left; run it "
            "again"
        )
        raise CommitConflictError(message)


def _check_deleted_are_live(live: LiveFiles, changes: Iterable[ManifestEntry], subject: str) -> None:
    deleted = [entry for entry in changes if entry.kind is FileKind.DELETE]
    not_live = live.missing(deleted)
    if not_live:
        first = not_live[0]
        message = (
            f"{subject}: {len(not_live)} file(s) that this commit replaces are no longer live, first "
            f"{first.file.file_name} at level {first.file.level} of bucket {first.bucket}: another commit compacted or "
            "overwrote them. Nothing of this commit is left; read the newest snapshot and run it again"
        )
        raise CommitConflictError(message)
    for entry in live.changed(deleted):
        message = (
            f"{subject}: of {entry.file.file_name} in bucket {entry.bucket}, which this commit replaces, other rows "
            "are marked as deleted now: another engine compacted. Nothing of this commit is left; read the newest "
            "snapshot and run it again"
        )
        raise CommitConflictError(message)


def _check_added_are_new(live: LiveFiles, added: Sequence[ManifestEntry], subject: str) -> None:
    for entry in live.held(added):
        message = (
            f"{subject}: the file {entry.file.file_name} of bucket {entry.bucket} is part of the table already: "
            "the same commit messages were committed twice under different identities"
        )
        raise InvalidInputError(message)


def _check_bucket_counts(live: LiveFiles, added: Sequence[ManifestEntry], subject: str) -> None:
    counts = {partition: live.bucket_count(partition) for partition in {entry.partition for entry in added}}
    for entry in added:
        count = counts[entry.partition]
        if count is not None and count != entry.total_buckets:
            message = (
                f"{subject}: the rows were written for {entry.total_buckets} buckets, but the partition now has "
                f"{count}: an overwrite changed the number. Nothing of this commit is left; reload the table, then "
                "run it again"
            )
            raise CommitConflictError(message)


def _upper_buckets(added: Sequence[ManifestEntry]) -> list[tuple[bytes, int]]:
    return sorted({(entry.partition, entry.bucket) for entry in added if entry.file.level > 0})


def _check_disjoint(entries: Iterable[ManifestEntry], comparable_key: ComparableKeyOf, subject: str) -> None:
    levels: dict[int, list[DataFileMeta]] = {}
    for entry in entries:
        if entry.file.level > 0:
            levels.setdefault(entry.file.level, []).append(entry.file)
    for level, files in levels.items():
        ordered = sorted(files, key=lambda file: comparable_key(file.min_key))
        for lower, upper in pairwise(ordered):
            if comparable_key(upper.min_key) <= comparable_key(lower.max_key):
                message = (
                    f"{subject}: at level {level} the keys of {lower.file_name} and {upper.file_name} would overlap: "
                    "another commit put files there. Nothing of this commit is left; run it again"
                )
                raise CommitConflictError(message)
