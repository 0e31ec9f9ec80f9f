"""``table.rollback_to``: restores the content of an older snapshot."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.snapshot.commit_record import ROLLED_BACK_TO
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.schema.encoding.moment import Moment
from storage_lib.table.commit.table_restore import TableRestore
from storage_lib.table.evolve.table_tags import TableTags
from storage_lib.table.protocol.identity import identity_of
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.read.time_travel import TimeTravel


class TableRollback:
    """Resolves the snapshot and protects its files while they are restored."""

    def __init__(
        self, context: TableContext, *, time_travel: TimeTravel, tags: TableTags, restore: TableRestore, tracks: bool
    ) -> None:
        self._table = context.name
        self._environment = context.environment
        self._time_travel = time_travel
        self._tags = tags
        self._restore = restore
        self._tracks = tracks

    def rollback_to(
        self,
        *,
        snapshot_id: int | None,
        tag: str | None,
        timestamp: Moment | None,
        change_tracking: bool | None,
        commit_user: str | None,
        commit_identifier: int | None,
    ) -> Snapshot | None:
        """See ``DynamicTable.rollback_to``."""
        if snapshot_id is None and tag is None and timestamp is None:
            message = f"table {self._table}: say what to roll back to: snapshot_id=..., tag=... or timestamp=..."
            raise InvalidInputError(message)
        user, identifier = identity_of(self._table, self._environment, commit_user, commit_identifier)
        earlier = self._restore.committed(user, identifier)
        if earlier is not None:
            return earlier
        target = self._time_travel.snapshot(snapshot_id=snapshot_id, tag=tag, timestamp=timestamp)
        if target is None:
            return None
        with self._tags.keeping(target):
            return self._restore.restore(
                target,
                tracked=self._tracks if change_tracking is None else change_tracking,
                commit_user=user,
                commit_identifier=identifier,
                properties={ROLLED_BACK_TO: str(target.id)},
            )
