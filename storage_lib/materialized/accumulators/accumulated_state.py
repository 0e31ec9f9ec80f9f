"""The table that stores the state of a materialized table's accumulators, and the snapshot that the table names.

    state commits, based on the snapshot that the table names ─▶ table commits rows, positions and the state's snapshot

The state is always read at the named snapshot. Commits that no snapshot of the table names were left by refreshes that
ended before their second commit, or lost against another one; the next refresh rolls them back before it adds changes.
The name includes a digest of the sources' positions, so that a refresh without accumulators, as by an older version of
this library, makes the state unusable rather than wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import (
    CorruptFileError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.file_store.snapshot.snapshot import CommitKind
from storage_lib.io.environment import system_environment
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.materialized.commit.collected_rows import commit_collected
from storage_lib.materialized.sources.source_positions import COLUMNS, SourcePosition, position_of, recorded_position
from storage_lib.table.protocol.source_offsets import SourceRange

if TYPE_CHECKING:
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceOffsets
    from storage_lib.table.protocol.write_context import WriteContext

ACCUMULATORS = "@accumulators"
"""Name of the state among the sources whose positions a materialized table stores."""

LOOKED_UP_MAX = 1_000
"""Groups whose state is looked up by their keys; for more, an engine reads the state."""

_INHERITED = ("bucket", "file.format", "lease.timeout")
_SEPARATOR = "/"
_STATE = "$state_"
_DAY_MILLIS = 86_400_000
_HASH_LENGTH = 16


class UnreadableStateError(CorruptFileError):
    """The state of the accumulators can't be read, so that the refresh has to rebuild it."""

    @classmethod
    def of(cls, cause: object) -> Self:
        """Return the error for its cause."""
        return cls(f"the accumulators can't be read: {str(cause).splitlines()[0]}")


@dataclass(frozen=True, slots=True)
class NamedState:
    """The state at one of its snapshots, 0: without rows."""

    table: DynamicTable
    snapshot_id: int


def new_state(table: DynamicTable, query: AccumulatedQuery) -> DynamicTable:
    """Create the table of a new state."""
    given = {key: value for key, value in table.schema.options.items() if key in _INHERITED}
    if not given.get("bucket", "").isdigit():
        given["bucket"] = "1"
    address, environment = table.address, system_environment()
    return open_catalog(address.warehouse, address.options).create_state(
        table.name,
        f"{environment.clock.now_millis()}-{environment.new_name()}",
        query.state,
        primary_key=query.primary_key,
        options=given,
    )


def named_state(
    table: DynamicTable, query: AccumulatedQuery, recorded: SourceOffsets, ranges: Sequence[SourceRange]
) -> NamedState | str:
    """Return the state that belongs to the ``recorded`` positions of a table; otherwise why there is none.

    ``ranges`` begin at the positions of the definition and the sources.
    """
    position = recorded_position(recorded, ACCUMULATORS)
    if position is None or position.mark is None:
        return "the table has no accumulators yet"
    state_id, _, digest = position.mark.partition(_SEPARATOR)
    address = table.address
    try:
        state = open_catalog(address.warehouse, address.options).load_table(f"{table.name}{_STATE}{state_id}")
        at = None if position.snapshot_id == 0 else state.inspect.snapshot(position.snapshot_id)
    except (NotFoundError, SnapshotExpiredError, CorruptFileError, InvalidInputError):
        return "the accumulators are missing"
    if position.snapshot_id == 0 and state.inspect.latest_snapshot_id() is not None:
        # A state without rows has no snapshot to which later commits could be rolled back.
        return "a refresh ended between its two commits"
    starts = [(each.source, each.start) for each in ranges]
    if digest != _digest(query, position_of(at), starts):
        return "the accumulators belong to another state of the table"
    return NamedState(state, position.snapshot_id)


def state_range(
    query: AccumulatedQuery, recorded: SourceOffsets, state: NamedState, ranges: Sequence[SourceRange]
) -> SourceRange:
    """Return the range that makes a commit of ``ranges`` name a state."""
    at = position_of(None if state.snapshot_id == 0 else state.table.inspect.snapshot(state.snapshot_id))
    digest = _digest(query, at, [(each.source, each.end) for each in ranges])
    mark = f"{state.table.name.rpartition(_STATE)[2]}{_SEPARATOR}{digest}"
    end = SourcePosition(state.snapshot_id, mark).to_offsets()
    return SourceRange(source=ACCUMULATORS, start=recorded.of(ACCUMULATORS), end=end)


def looked_up(query: AccumulatedQuery, state: NamedState, change: pa.Table) -> pa.Table:
    """Return the stored rows of groups, found by the columns of the primary key in ``change``.

    Raises as ``DynamicTable.lookup``.
    """
    if state.snapshot_id == 0:
        return query.state.empty_table()
    names = list(query.primary_key)
    keys = change.select(names).cast(pa.schema([state.table.arrow_schema.field(name) for name in names]))
    found = state.table.lookup(keys, columns=query.state.names, snapshot_id=state.snapshot_id)
    return found.select(query.state.names).cast(query.state)


def base_of(state: NamedState) -> int:
    """Return the newest snapshot of the state, which has the rows of the named one; later commits are rolled back."""
    newest = state.table.inspect.latest_snapshot_id() or 0
    later = [state.table.inspect.snapshot(each) for each in range(state.snapshot_id + 1, newest + 1)]
    if all(each.commit_kind is CommitKind.COMPACT for each in later):
        return newest
    restored = state.table.rollback_to(snapshot_id=state.snapshot_id)
    return newest if restored is None else restored.id


def commit_state(rows: pa.Table, table: DynamicTable, based_on: int) -> NamedState:
    """Write rows as they are stored, with their row kinds in the last column.

    Raises ``CommitConflictError`` if the state has changed since ``based_on``.
    """
    snapshot = commit_collected(rows, table, begin_state(table, based_on), BATCH_COMMIT_IDENTIFIER)
    return NamedState(table, based_on if snapshot is None else snapshot.id)


def begin_state(table: DynamicTable, based_on: int) -> Callable[[], WriteContext]:
    """Return what begins the commit of a state that was computed from snapshot ``based_on`` (0: none)."""
    user = f"refresh-{system_environment().new_name()}"
    return lambda: table.new_write().begin(commit_user=user, based_on=based_on, needs_lease=True)


def drop_state(state: DynamicTable) -> None:
    """Delete a state that no snapshot of its table names."""
    address = state.address
    name, _, state_id = state.name.partition(_STATE)
    open_catalog(address.warehouse, address.options).drop_state(name, state_id)


def drop_other_states(table: DynamicTable, recorded: SourceOffsets, current: NamedState) -> None:
    """Delete the state that the ``recorded`` positions of a table named, and those that crashed processes left.

    A state of the last day may belong to a refresh that still runs.
    """
    address = table.address
    catalog = open_catalog(address.warehouse, address.options)
    position = recorded_position(recorded, ACCUMULATORS)
    named = "" if position is None or position.mark is None else position.mark.partition(_SEPARATOR)[0]
    oldest = system_environment().clock.now_millis() - _DAY_MILLIS
    for state_id in catalog.states(table.name):
        created = state_id.partition("-")[0]
        is_left = created.isdigit() and int(created) < oldest
        if (state_id == named or is_left) and not current.table.name.endswith(f"{_STATE}{state_id}"):
            catalog.drop_state(table.name, state_id)


def _digest(query: AccumulatedQuery, state: SourcePosition, positions: Sequence[tuple[str, LogOffsets | None]]) -> str:
    # Older versions of this library recorded no columns, and their states stay usable.
    known = [(name, at) for name, at in positions if name != COLUMNS or at is not None]
    named = sorted((name, "" if at is None else f"{at.to_json()} {at.log_id}") for name, at in known)
    text = "\n".join([query.form, str(state.snapshot_id), str(state.mark), *(f"{name} {at}" for name, at in named)])
    return sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


@contextmanager
def readable_state() -> Iterator[None]:
    """Raise ``UnreadableStateError`` for errors of reading a state in the body."""
    try:
        yield
    except (CorruptFileError, NotFoundError, SnapshotExpiredError) as error:
        raise UnreadableStateError.of(error) from error
