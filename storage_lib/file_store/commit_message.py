"""What writers hand to the committer: one message per (partition, bucket), gathered into one committable.

Both are plain frozen values, so any engine can pickle them between its tasks and its driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.file_store.merge_tree.increment import Increment

BATCH_COMMIT_IDENTIFIER = 9223372036854775807
"""The identifier of batch jobs without one of their own: never deduplicated (docs/format.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The changes of one bucket: ``partition`` is the serialized BinaryRow of the partition columns."""

    partition: bytes
    bucket: int
    bucket_count: int
    increment: Increment


@dataclass(frozen=True, slots=True, kw_only=True)
class Committable:
    """All messages of one commit, its identity, and what the snapshot has to remember about it.

    ``properties`` go into the snapshot as they are; the file store does not know what they mean.
    ``watermark`` is in epoch milliseconds; the newest of it and the previous snapshot's is stored.
    """

    commit_user: str
    commit_identifier: int
    messages: tuple[CommitMessage, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    watermark: int | None = None
