"""Write the difference between a materialized table and its query's answer, with the new positions, as one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.materialized.commit.collected_rows import commit_collected, commit_sources
from storage_lib.materialized.sources.weighted_rows import with_kinds

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange
    from storage_lib.table.protocol.write_context import WriteContext


ATTEMPTS = 3
"""How often one refresh plans and computes, if another commit comes first or the outcome of its own is unknown."""


def refresh_committed(table: DynamicTable, commit_user: str) -> Snapshot | None:
    """Return the newest snapshot that a refresh with this ``commit_user`` has committed; None if there is none.

    Lets a repeated task report the refresh of its first try. Ends the log transactions that a crash left open.
    """
    builder = table.new_write()
    found = (builder.committed(commit_user, attempt) for attempt in range(1, ATTEMPTS + 1))
    return max((each for each in found if each is not None), key=lambda each: each.id, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCommit:
    """Identity and content of the commit of a refresh.

    ``identifier`` is the number of the attempt, from 1, if the caller gave the user: each attempt commits something
    else. ``based_on`` is the snapshot of the table (0: none) from which the difference was computed. ``watermark``:
    epoch milliseconds, None if a source has none.
    """

    user: str
    based_on: int
    sources: Sequence[SourceRange]
    watermark: int | None = None
    identifier: int = BATCH_COMMIT_IDENTIFIER

    @property
    def moves(self) -> bool:
        """Whether the commit changes a position."""
        return any(each.start is None or not each.start.is_same_place(each.end) for each in self.sources)


def commit_positions(table: DynamicTable, commit: RefreshCommit) -> Snapshot | None:
    """Commit positions without rows; None if they do not move.

    Raises ``CommitConflictError`` if the table has changed since ``based_on``.
    """
    return commit_sources(
        table,
        lambda: begin_refresh(table, commit),
        commit.identifier,
        sources=commit.sources if commit.moves else (),
        watermark=commit.watermark,
    )


def commit_difference(rows: pa.Table, table: DynamicTable, commit: RefreshCommit) -> Snapshot | None:
    """Write rows of the table with weights (``_weight``), equal rows once, as one commit with the positions.

    Returns None if there are neither rows nor new positions. Raises ``InvalidInputError``, with nothing written, for
    two rows with one primary key or a NULL in it, and ``CommitConflictError`` if the table has changed since
    ``based_on``.
    """
    return commit_collected(
        with_kinds(rows, table.options.row_kind_field),
        table,
        lambda: begin_refresh(table, commit),
        commit.identifier,
        adds_up=bool(table.schema.primary_keys),
        sources=commit.sources if commit.moves else (),
        watermark=commit.watermark,
    )


def begin_refresh(table: DynamicTable, commit: RefreshCommit) -> WriteContext:
    """Begin the commit under the table's lease; ``CommitConflictError`` if the table has changed since ``based_on``."""
    return table.new_write().begin(commit_user=commit.user, based_on=commit.based_on, needs_lease=True, refreshes=True)
