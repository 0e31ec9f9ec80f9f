"""Convert commit messages to manifest entries that add and delete files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.merge_tree.increment import Increment


def appended_by(messages: Iterable[CommitMessage]) -> tuple[ManifestEntry, ...]:
    """Files of new rows, and files that a rewrite of rows took out."""
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
    """Inputs and outputs of compactions: the same rows in other files."""
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
    """The changelog files of compactions, or those of new rows."""
    return tuple(
        _entry(message, FileKind.ADD, file)
        for message in messages
        for file in (message.increment.compact_changelog if of_compactions else message.increment.new_changelog)
    )


def looked_up_by(messages: Iterable[CommitMessage]) -> tuple[ManifestEntry, ...]:
    """The files that compactions took into account and left where they are."""
    return tuple(_entry(message, FileKind.ADD, file) for message in messages for file in message.increment.looked_up)


def deleted(entry: ManifestEntry) -> ManifestEntry:
    """The entry that takes a live file out; it repeats the original values exactly, as the format asks."""
    return replace(entry, kind=FileKind.DELETE)


def only_compaction(message: CommitMessage) -> CommitMessage:
    """The message without its new rows."""
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
