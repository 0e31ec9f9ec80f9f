"""Cache of the schemas under which a table's files were written, by id.

Columns are identified by id, so a renamed column is found in older files, and a new column that reuses a name is not
confused with the former one.
"""

from __future__ import annotations

import threading

from storage_lib.errors import NotFoundError
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.table_options import UUID_OPTION
from storage_lib.schema.table_schema import DataField, TableSchema


class SchemaVersions:
    """Schemas by id. ``current`` is the schema under which rows are read and written. Thread-safe."""

    def __init__(self, current: TableSchema, history: SchemaHistory) -> None:
        self.current = current
        self._history = history
        self._known = {current.id: current}
        self._checked: bytes | None = None
        self._lock = threading.Lock()

    def of(self, schema_id: int) -> TableSchema:
        """Return the schema with this id; raises as ``SchemaHistory.load``."""
        with self._lock:
            known = self._known.get(schema_id)
        if known is None:
            known = self._history.load(schema_id)
            with self._lock:
                self._known[schema_id] = known
        return known

    def is_newest(self) -> bool:
        """Whether no version after ``current`` exists; one listing, since a version never changes."""
        return max(self._history.ids(), default=self.current.id) <= self.current.id

    def check_still_there(self, table: str) -> None:
        """Raise ``NotFoundError`` if the table was dropped, or dropped and recreated, since ``current`` was read.

        Without this check, a process that has the table open would write into, or clean up, another table.
        """
        try:
            there = self._history.read(self.current.id)
        except NotFoundError:
            happened = "dropped"
        else:
            # Every commit runs this check, so a file that was verified before is only compared, not decoded again.
            if there == self._checked:
                return
            if _identity(self._history.decoded(self.current.id, there)) == _identity(self.current):
                self._checked = there
                return
            happened = "dropped and recreated"
        message = (
            f"table {table} was {happened} since it was opened here, so nothing was changed; load it again from "
            "its catalog"
        )
        raise NotFoundError(message)

    def field_in(self, schema_id: int, name: str) -> DataField | None:
        """Return the current column ``name`` as of that version; None if it did not exist then."""
        current = self.current.field(name)
        if schema_id == self.current.id:
            return current
        return next((each for each in self.of(schema_id).fields if each.id == current.id), None)

    def unchanged_in(self, schema_id: int, names: frozenset[str]) -> bool:
        """Whether these columns have the same name, id and type in that version."""
        if schema_id == self.current.id:
            return True
        for name in names:
            was, is_now = self.field_in(schema_id, name), self.current.field(name)
            if (
                was is None
                or was.name != is_now.name
                or was.type.with_nullable(True) != is_now.type.with_nullable(True)
            ):
                return False
        return True


def _identity(schema: TableSchema) -> tuple[str | None, int]:
    return schema.options.get(UUID_OPTION), schema.time_millis
