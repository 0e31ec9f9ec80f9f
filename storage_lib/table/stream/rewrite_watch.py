"""Detects rewrites of a table for its streams: positions in the old log are invalid, and it receives no records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import CommitConflictError, InvalidInputError, NotFoundError
from storage_lib.file_store.snapshot.schema_in_force import rewritten_since
from storage_lib.schema.placing.layout import TOPIC_OPTION, has_same_rows, layout_of

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.file_store.store import FileStore
    from storage_lib.io.environment import Clock
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.protocol.stream_position import StreamPosition

_LOOK_SECONDS = 5.0
"""Interval at which an idle stream checks the table's newest snapshot."""


class RewriteWatch:
    """Detects rewrites of the table for one stream that reads it under ``schema``."""

    def __init__(self, *, table: str, schema: TableSchema, file_store: FileStore, clock: Clock) -> None:
        self._table = table
        self._schema = schema
        self._file_store = file_store
        self._clock = clock
        self._looked: float | None = None

    def refuse_before(self, position: StreamPosition) -> None:
        """Raise ``InvalidInputError`` for a position in another layout, except between snapshots with the same rows."""
        if position.layout == layout_of(self._schema):
            return
        if position.offsets is None and self._had_same_rows(position.layout):
            return
        topic = self._schema.options.get(TOPIC_OPTION)
        message = (
            f"table {self._table} was rewritten (ALTER TABLE ... ADD PRIMARY KEY, or SET ('bucket' = ...)) after this "
            f"position was taken{f', and its log is topic {topic!r} now' if topic else ''}. Start the stream again "
            "without it (a query in Spark: with a checkpoint of its own)"
        )
        raise InvalidInputError(message)

    def refuse_after(self, snapshot: Snapshot) -> None:
        """Raise ``InvalidInputError`` for a snapshot of a later layout with different rows."""
        if snapshot.schema_id <= self._schema.id:
            return
        newer = self._file_store.version(snapshot.schema_id)
        if not has_same_rows(newer, self._schema):
            raise InvalidInputError(str(rewritten_since(self._table, self._schema, newer)))

    def check(self) -> None:
        """Raise ``InvalidInputError`` if the table has been rewritten; checks at most every ``_LOOK_SECONDS``."""
        now = self._clock.monotonic()
        if self._looked is not None and now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        try:
            self._file_store.check_layout(self._file_store.snapshots.latest())
        except CommitConflictError as error:
            raise InvalidInputError(str(error)) from error

    def _had_same_rows(self, layout: int) -> bool:
        try:
            return has_same_rows(self._file_store.version(layout), self._schema)
        except NotFoundError:
            return False
