"""Convert commit messages to manifest entries that add and delete files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.merge_tree.increment import Increment


def appended_by(messages: Iterable[CommitMessage]) -> tuple[ManifestEntry, ...]:
    """Return the files of new rows, and the files removed by a rewrite of rows."""
    return tuple(
        _entry(message, kind, file)
        for message in messages
        for kind, files in (
            (FileKind.DELETE, message.increment.deleted_files),
            (FileKind.ADD, message.increment.new_files),
        )
        for file in files
    )


def compacted_by(messages: Iterable[CommitMessage]) -> tuple[ManifestEntry, ...]:
    """Return the inputs and outputs of compactions: the same rows in other files."""
    return tuple(
        _entry(message, kind, file)
        for message in messages
        for kind, files in (
            (FileKind.DELETE, message.increment.compact_before),
            (FileKind.ADD, message.increment.compact_after),
        )
        for file in files
    )


def changelog_of(messages: Iterable[CommitMessage], *, of_compactions: bool) -> tuple[ManifestEntry, ...]:
    """Return the changelog files of compactions, or those of new rows."""
    return tuple(
        _entry(message, FileKind.ADD, file)
        for message in messages
        for file in (message.increment.compact_changelog if of_compactions else message.increment.new_changelog)
    )


def looked_up_by(messages: Iterable[CommitMessage]) -> tuple[ManifestEntry, ...]:
    """Return the files that compactions read but did not replace."""
    return tuple(_entry(message, FileKind.ADD, file) for message in messages for file in message.increment.looked_up)


def deleted(entry: ManifestEntry) -> ManifestEntry:
    """Return the entry that deletes a live file; it repeats the original values exactly, as the format requires."""
    return replace(entry, kind=FileKind.DELETE)


def only_compaction(message: CommitMessage) -> CommitMessage:
    """Return the message without its new rows."""
    increment = Increment(
        compact_before=message.increment.compact_before,
        compact_after=message.increment.compact_after,
        vectors=message.increment.vectors,
        compact_changelog=message.increment.compact_changelog,
        looked_up=message.increment.looked_up,
    )
    return replace(message, increment=increment)


def _entry(message: CommitMessage, kind: FileKind, file: DataFileMeta) -> ManifestEntry:
    return ManifestEntry(
        kind=kind,
        partition=message.partition,
        bucket=message.bucket,
        total_buckets=message.bucket_count,
        file=file,
    )
