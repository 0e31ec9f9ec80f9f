"""A commit that changes the rejected records together with the offsets of their sources."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from storage_lib.errors import CommitOutcomeUnknownError, StorageError
from storage_lib.io.after_commit import after_commit
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourceRange, SourcesOf

if TYPE_CHECKING:
    from storage_lib.file_store.rejected.rejected_change import RejectedChange
    from storage_lib.file_store.snapshot.snapshot import Snapshot


class CommitOfSources(Protocol):
    """Commits, with a function that computes the source offsets of the snapshot."""

    def __call__(self, *, sources: SourcesOf) -> Snapshot | None:
        """Return the snapshot, or that of an earlier commit under the same identity."""


def with_rejected(before: SourceOffsets, *, ranges: Sequence[SourceRange], change: RejectedChange) -> SourceOffsets:
    """Return the offsets and the rejected records after a commit of ``ranges``; raises as ``advanced`` and ``upon``."""
    after = before.advanced(ranges)
    return replace(after, rejected=change.upon(after.rejected))


def commit_with_rejected(
    table: str, commit: CommitOfSources, ranges: Sequence[SourceRange], change: RejectedChange
) -> Snapshot | None:
    """Commit ``ranges`` and the ``change``; files of the change that no snapshot names are deleted afterwards."""
    try:
        snapshot = commit(sources=partial(with_rejected, ranges=ranges, change=change))
    except CommitOutcomeUnknownError:
        # A snapshot may name the files: keep them.
        raise
    except Exception:
        # The original error matters more than a failed cleanup.
        with suppress(StorageError):
            change.discard(keep=None)
        raise
    if snapshot is not None and snapshot.has_files:
        # Of an expired snapshot the properties are not known: the orphan file cleanup deletes what is left.
        with after_commit(f"table {table}: deleting files of rejected records that lost attempts left"):
            change.discard(keep=SourceOffsets.of_snapshot(snapshot).rejected)
    return snapshot
