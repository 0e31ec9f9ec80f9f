"""Commit messages from writers to the committer: one per (partition, bucket), collected into one committable.

Both are plain frozen values, so any engine can pickle them between its tasks and its driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.file_store.manifest.hash_index import HashIndexChange
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.snapshot.commit_record import BATCH_COMMIT_IDENTIFIER

__all__ = ["BATCH_COMMIT_IDENTIFIER", "CommitMessage", "Committable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """Changes of one bucket; ``partition`` is the serialized BinaryRow of the partition columns.

    ``watermark`` covers all rows that its writer has received, in epoch milliseconds.
    """

    partition: bytes
    bucket: int
    bucket_count: int
    increment: Increment
    watermark: int | None = None
    hash_index: HashIndexChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committable:
    """All messages of one commit, its identity, and data to store in the snapshot.

    ``properties`` are stored in the snapshot unchanged; the file store does not interpret them.
    ``watermark`` is in epoch milliseconds; the newest of this one, the messages' and the previous snapshot's is stored.
    """

    commit_user: str
    commit_identifier: int
    messages: tuple[CommitMessage, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    watermark: int | None = None

    @property
    def newest_watermark(self) -> int | None:
        """The newest watermark of the committable and its messages; None if none has one."""
        watermarks = (self.watermark, *(message.watermark for message in self.messages))
        return max((each for each in watermarks if each is not None), default=None)
