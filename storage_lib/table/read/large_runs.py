"""Buckets with a large sorted run below a few newer rows, for an engine that reads large files by itself.

    newer files      few rows, merged here            ─▶ keys, rows
    largest run      rows of the table, except those with one of these keys

So an anti join with few keys takes the place of a merge of all rows. It is right if every newer row replaces the row
with its key: for the merge engine ``deduplicate`` without a sequence field, and only if the sequence numbers of the
newer files are higher, which those of writers that ran during a compaction may not be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.split import Split
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.table.read.unmerged_file import UnmergedFile

if TYPE_CHECKING:
    from storage_lib.file_store.kind.file_grouping import FileGrouping
    from storage_lib.file_store.planning.plan import Plan
    from storage_lib.file_store.read import FileStoreRead
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema

NEWER_ROWS_MAX = 100_000
NEWER_BYTES_MAX = 32 << 20
"""Size of the newer files, and of their rows in memory."""

_BATCH_ROWS = 10_000
ROWS_PER_NEWER_ROW_MIN = 10
"""The large runs have at least so many times as many rows as the newer files."""

_COMPARED_ALIKE = frozenset(
    {
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INTEGER,
        TypeRoot.BIGINT,
        TypeRoot.DATE,
        TypeRoot.VARCHAR,
        TypeRoot.DECIMAL,
    }
)
"""Key types of which every engine finds the same values equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRuns:
    """Files of the largest run of each bucket of a plan, and the few ``newer`` files above them, by bucket.

    Rows of ``files`` that are deletions are not rows of the table.
    """

    files: tuple[UnmergedFile, ...]
    newer: tuple[Split, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRows:
    """``keys`` of all records of the newer files, as columns of the primary key, and the ``rows`` that they leave."""

    keys: pa.Table
    rows: pa.Table


def newest_version_stands(schema: TableSchema, options: TableOptions) -> bool:
    """Return whether the newest version of each key in a bucket's files is its row, or its deletion."""
    return (
        bool(schema.primary_keys)
        and options.newest_wins
        and not options.ignore_delete
        and not options.deletion_vectors_enabled
    )


def replaces_by_key(schema: TableSchema, options: TableOptions) -> bool:
    """Return whether the newest row of each key is the table's row, and engines compare the keys alike."""
    keys = schema.primary_keys
    return (
        newest_version_stands(schema, options)
        and set(schema.partition_keys) <= set(keys)
        and all(schema.field(name).type.root in _COMPARED_ALIKE for name in keys)
    )


def large_runs(plan: Plan, read: FileStoreRead) -> LargeRuns | None:
    """Divide files that have to be merged, by their metadata; None if a merge of all of them is better."""
    newer = _newer_files(plan)
    if newer is None:
        return None
    above = {file.file_name for split in newer for file in split.files}
    entries = [entry for entry in plan.entries if entry.file.file_name not in above]
    return LargeRuns(
        files=tuple(UnmergedFile(path=read.path_of(entry), entry=entry) for entry in entries), newer=tuple(newer)
    )


def newer_rows(
    runs: LargeRuns, read: FileStoreRead, columns: Sequence[str], key_schema: pa.Schema, row_schema: pa.Schema
) -> NewerRows | None:
    """Read the newer files, with ``columns`` of their rows; None if they are large in memory.

    Raises as ``FileStoreRead.read``.
    """
    names = key_schema.names
    keys = _up_to(NEWER_BYTES_MAX, (batch for split in runs.newer for batch in _keys(read, split, names)))
    rows = None
    if keys is not None:
        rows = _up_to(NEWER_BYTES_MAX, (batch for split in runs.newer for batch in read.read(split, columns)))
    if keys is None or rows is None:
        return None
    return NewerRows(
        keys=pa.Table.from_batches(keys, key_schema).group_by(names).aggregate([]).select(names),
        rows=pa.Table.from_batches(rows, row_schema),
    )


def _newer_files(plan: Plan) -> list[Split] | None:
    """Return the files above the largest run of each bucket; None if they are many, or may not be newer."""
    found: list[Split] = []
    large_rows = newer_rows = newer_bytes = 0
    for partition, bucket, files in plan.by_bucket():
        below = _largest_run(files, plan.grouping)
        names = {file.file_name for file in below}
        above = tuple(file for file in files if file.file_name not in names)
        if plan.snapshot is None or not above or not _is_older(below, above):
            return None
        found.append(Split(snapshot_id=plan.snapshot.id, partition=partition, bucket=bucket, files=above))
        large_rows += sum(file.row_count for file in below)
        newer_rows += sum(file.row_count for file in above)
        newer_bytes += sum(file.file_size for file in above)
    are_few = newer_rows <= NEWER_ROWS_MAX and newer_bytes <= NEWER_BYTES_MAX
    return found if found and are_few and large_rows >= newer_rows * ROWS_PER_NEWER_ROW_MIN else None


def _largest_run(files: Sequence[DataFileMeta], grouping: FileGrouping) -> list[DataFileMeta]:
    """Return the files of the largest level; of level 0, the largest file, or the oldest ones if they are larger."""
    level = max(file.level for file in files)
    if level > 0:
        return [file for file in files if file.level == level]
    largest = max(files, key=lambda file: file.row_count)
    oldest = _oldest_run(files, grouping)
    return oldest if sum(file.row_count for file in oldest) > largest.row_count else [largest]


def _oldest_run(files: Sequence[DataFileMeta], grouping: FileGrouping) -> list[DataFileMeta]:
    """Return the oldest files that share no key, as those of a load, which writes one range of keys after another.

    If some files share keys, so do more of them. So bisection finds the first file that shares some.
    """
    in_order = sorted(files, key=lambda file: file.max_sequence_number)
    count = bisect_left(range(1, len(in_order) + 1), 1, key=lambda size: len(grouping.unmerged(in_order[:size])) < size)
    return in_order[:count]


def _keys(read: FileStoreRead, split: Split, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the keys of all records of the files, also of deletions."""
    reader = read.reader(split.partition, split.bucket)
    for file in split.files:
        yield from reader.read(file, names, batch_rows=_BATCH_ROWS)


def _up_to(bytes_max: int, batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch] | None:
    """Return all batches; None if they are larger than their files promised."""
    found: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > bytes_max:
            return None
        found.append(batch)
    return found


def _is_older(below: Sequence[DataFileMeta], above: Sequence[DataFileMeta]) -> bool:
    return max(file.max_sequence_number for file in below) < min(file.min_sequence_number for file in above)
