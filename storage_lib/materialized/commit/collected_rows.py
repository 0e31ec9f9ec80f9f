"""Write rows that are in this process as the commit of a refresh, which begins once they are computed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.table.changes.answer_rows import SharedKeyError
from storage_lib.table.protocol.write_context import TableCommitMessage, WriteContext
from storage_lib.table.write.checked_changes import ContradictionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange


def commit_collected(
    rows: pa.Table,
    table: DynamicTable,
    begin: Callable[[], WriteContext],
    commit_identifier: int,
    *,
    adds_up: bool = False,
    sources: Sequence[SourceRange] = (),
    watermark: int | None = None,
) -> Snapshot | None:
    """Let ``begin`` begin a commit under the table's lease, and write the rows, with the row kind in the last column.

    ``adds_up``: the rows are additions to and removals from an answer (``WriteBuilder.answer_changes``). Without rows,
    only ``sources`` are committed; returns None without either. Raises ``InvalidInputError``, with nothing written, for
    rows that contradict each other or the table, and otherwise as ``begin`` and ``WriteBuilder.commit``.
    """
    if rows.num_rows == 0:
        return commit_sources(table, begin, commit_identifier, sources=sources, watermark=watermark)
    builder = table.new_write()
    context = begin()
    try:
        written = _written(table, context, rows, adds_up=adds_up)
    except (SharedKeyError, ContradictionError) as error:
        if builder.committed(context.commit_user, commit_identifier) is None:
            with suppress(StorageError):
                builder.abort(context, [])
            raise InvalidInputError(str(error)) from error
        # A repeated commit finds its own rows in the table; the commit tells that it exists.
        written = TableCommitMessage()
    except BaseException:
        # Report why the write failed rather than a failed release: the lease expires by itself.
        with suppress(StorageError):
            builder.abort(context, [])
        raise
    snapshot = builder.commit(context, [written], commit_identifier, sources=sources, watermark=watermark)
    if snapshot is not None:
        # The compaction after the refresh does the rest; only buckets with too many files delay the writer.
        table.maintenance.compact_written(snapshot, [written], only_crowded=True)
    return snapshot


def _written(table: DynamicTable, context: WriteContext, rows: pa.Table, *, adds_up: bool) -> TableCommitMessage:
    builder = table.new_write()
    batches = rows.to_batches()
    task = builder.open_task(context)
    try:
        if adds_up:
            for changes in builder.answer_changes(context, batches):
                task.write(changes)
        else:
            task.write_all(batches)
        return task.prepare_commit()
    except BaseException:
        task.abort()
        raise


def commit_sources(
    table: DynamicTable,
    begin: Callable[[], WriteContext],
    commit_identifier: int,
    *,
    sources: Sequence[SourceRange],
    watermark: int | None = None,
) -> Snapshot | None:
    """Commit new offsets of sources without rows; None without ``sources``. Raises as ``begin`` does."""
    if not sources:
        return None
    return table.new_write().commit(begin(), [], commit_identifier, sources=sources, watermark=watermark)
