"""Buckets with a large sorted run below a few newer rows, for an engine that reads large files by itself.

    newer files      few rows, merged here            ─▶ keys, rows
    largest level    rows of the table, except those with one of these keys

So an anti join with few keys takes the place of a merge of all rows. It is right if every newer row replaces the row
with its key: for the merge engine ``deduplicate`` without a sequence field, and only if the sequence numbers of the
newer files are higher, which those of writers that ran during a compaction may not be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.split import Split
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.table.read.unmerged_file import UnmergedFile

if TYPE_CHECKING:
    from storage_lib.file_store.planning.plan import Plan
    from storage_lib.file_store.read import FileStoreRead
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema

NEWER_ROWS_MAX = 100_000
NEWER_BYTES_MAX = 32 << 20
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
class ReplacedRows:
    """Rows of a plan: those of ``files`` without one of ``keys``, and ``rows``.

    ``keys`` has the columns of the primary key. Rows of ``files`` that are deletions are not rows of the table.
    """

    files: tuple[UnmergedFile, ...]
    keys: pa.Table
    rows: pa.Table
    newer_files: int
    newer_bytes: int


def replaces_by_key(schema: TableSchema, options: TableOptions) -> bool:
    """Return whether the newest row of each key is the table's row, and engines compare the keys alike."""
    keys = schema.primary_keys
    return (
        bool(keys)
        and set(schema.partition_keys) <= set(keys)
        and options.newest_wins
        and not options.ignore_delete
        and not options.deletion_vectors_enabled
        and all(schema.field(name).type.root in _COMPARED_ALIKE for name in keys)
    )


def replaced_rows(
    plan: Plan,
    read: FileStoreRead,
    columns: Sequence[str],
    key_schema: pa.Schema,
    row_schema: pa.Schema,
    path_of: Callable[..., str],
) -> ReplacedRows | None:
    """Return the rows of files that have to be merged, with ``columns``; None if a merge of all of them is better.

    Raises as ``FileStoreRead.read``.
    """
    if plan.snapshot is None:
        return None
    large: set[str] = set()
    newer: list[Split] = []
    for partition, bucket, files in plan.by_bucket():
        level = max(file.level for file in files)
        below = [file for file in files if file.level == level]
        above = tuple(file for file in files if file.level != level)
        if not above or level == 0 or not _is_older(below, above):
            return None
        large.update(file.file_name for file in below)
        newer.append(Split(snapshot_id=plan.snapshot.id, partition=partition, bucket=bucket, files=above))
    newer_files = [file for split in newer for file in split.files]
    newer_rows = sum(file.row_count for file in newer_files)
    newer_bytes = sum(file.file_size for file in newer_files)
    if newer_rows > NEWER_ROWS_MAX or newer_bytes > NEWER_BYTES_MAX or not newer:
        return None
    entries = [entry for entry in plan.entries if entry.file.file_name in large]
    if len(entries) != len(plan.entries) - len(newer_files):
        return None
    if sum(entry.file.row_count for entry in entries) < newer_rows * ROWS_PER_NEWER_ROW_MIN:
        return None
    names = key_schema.names
    keys = [batch.select(names) for split in newer for batch, _ in read.changes(split)]
    rows = [batch for split in newer for batch in read.read(split, columns)]
    return ReplacedRows(
        files=tuple(UnmergedFile(path=path_of(entry), entry=entry) for entry in entries),
        keys=pa.Table.from_batches(keys, key_schema).group_by(names).aggregate([]).select(names),
        rows=pa.Table.from_batches(rows, row_schema),
        newer_files=len(newer_files),
        newer_bytes=newer_bytes,
    )


def _is_older(below: Sequence[DataFileMeta], above: Sequence[DataFileMeta]) -> bool:
    return max(file.max_sequence_number for file in below) < min(file.min_sequence_number for file in above)
