"""Commit messages from writers to the committer: one per (partition, bucket), gathered into one committable.

Both are plain frozen values, so any engine can pickle them between its tasks and its driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.file_store.manifest.hash_index import HashIndexChange
from storage_lib.file_store.merge_tree.increment import Increment

BATCH_COMMIT_IDENTIFIER = 9223372036854775807
"""The identifier of batch jobs without one of their own: never deduplicated (docs/format.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The changes of one bucket: ``partition`` is the serialized BinaryRow of the partition columns.

    ``watermark`` is that of all rows which its writer has taken, in epoch milliseconds.
    """

    partition: bytes
    bucket: int
    bucket_count: int
    increment: Increment
    watermark: int | None = None
    hash_index: HashIndexChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committable:
    """All messages of one commit, its identity, and what the snapshot has to remember about it.

    ``properties`` go into the snapshot as they are; the file store does not know what they mean.
    ``watermark`` is in epoch milliseconds; the newest of it, the messages' and the previous snapshot's is stored.
    """

    commit_user: str
    commit_identifier: int
    messages: tuple[CommitMessage, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    watermark: int | None = None

    @property
    def newest_watermark(self) -> int | None:
        """The newest watermark given here or by a message; None without any."""
        told = (self.watermark, *(message.watermark for message in self.messages))
        return max((each for each in told if each is not None), default=None)
