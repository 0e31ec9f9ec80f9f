"""Commit rows that a statement computes from the table itself, without overwriting a concurrent commit.

first     read snapshot S ─▶ compute rows ─▶ lease ─▶ has the table changed since S?  no ─▶ commit
                                                                                  yes ─▶ release the lease, and
again     lease ─▶ read its base snapshot ─▶ compute rows ─▶ commit               (other writers wait meanwhile)

The rows have the columns that the table had when the statement began, so the statement fails if they were changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from storage_lib.errors import CommitConflictError, StorageError
from storage_lib.io.environment import system_environment
from storage_lib.spark.tasks.driver_lease import keep_alive
from storage_lib.spark.verbs.dataframe_verbs import write
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.table.verbs.changed_columns import refuse_changed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable


def commit_changed_rows(
    state: SessionState,
    table: DynamicTable,
    rows_of: Callable[[], AbstractContextManager[DataFrame]],
    *,
    change_tracking: bool | None,
) -> Snapshot | None:
    """Append the rows that ``rows_of`` computes from the newest snapshot; return None if there are none.

    ``rows_of`` is called again, under the lease, if another commit happens in between. Raises ``CommitConflictError``
    if the table's columns were changed since ``table`` was loaded.
    """
    user, identifier = state.identity.user, state.identity.identifier
    read = table.inspect.latest_snapshot_id() or 0
    _refuse_changed_columns(table)
    try:
        with _pinned(state, table, read), rows_of() as rows, errors_in_words():
            return write(
                rows,
                table,
                change_tracking=change_tracking,
                based_on=read,
                commit_user=user,
                commit_identifier=identifier,
            )
    except CommitConflictError:
        pass
    user = user or system_environment().new_name()
    write_context = table.new_write().begin(commit_user=user, tracked=change_tracking, needs_lease=True)
    if write_context.lease is not None:
        keep_alive(table, write_context.lease)
    try:
        _refuse_changed_columns(table)
        with _pinned(state, table, write_context.base_snapshot_id or 0), rows_of() as rows, errors_in_words():
            return write(
                rows,
                table,
                change_tracking=change_tracking,
                write_context=write_context,
                commit_user=user,
                commit_identifier=identifier,
            )
    except BaseException:
        # Report why the statement failed rather than a failed release: the lease expires by itself.
        with suppress(StorageError):
            table.new_write().abort(write_context, [])
        raise


def _refuse_changed_columns(table: DynamicTable) -> None:
    refuse_changed_columns(table.name, began=table.schema.id, newest=table.refresh().schema.id)


@contextmanager
def _pinned(state: SessionState, table: DynamicTable, snapshot_id: int) -> Iterator[None]:
    state.pinned[table.name] = snapshot_id
    try:
        yield
    finally:
        del state.pinned[table.name]
