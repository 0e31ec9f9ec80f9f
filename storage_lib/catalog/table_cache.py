"""Cache of the tables open in this Python process, so that micro-batches reuse Kafka connections and parsed manifests.

Spark reuses its Python processes between tasks and between micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.catalog.open_catalog import load_table_at
from storage_lib.errors import NotFoundError
from storage_lib.process_versions import ProcessVersions

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress

_OPEN_MAX = 32
_open: dict[TableKey, DynamicTable] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKey:
    """Identity of a table with its schema: a table recreated or altered under the same address has another key.

    Unpickled, it refuses a process whose versions are not those of the process that made it.
    """

    address: TableAddress
    uuid: str
    schema_id: int

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (ProcessVersions.here(), self.address, self.uuid, self.schema_id)

    @property
    def name(self) -> str:
        """``db.table``, for messages."""
        return self.address.name

    def table(self) -> DynamicTable:
        """Return this process's open table, opening it if necessary; ``NotFoundError`` if it no longer exists."""
        table = _open.get(self)
        if table is None:
            # With the driver's schema: the table may have been altered since.
            table = _same_table(load_table_at(self.address), self.uuid).refresh(schema_id=self.schema_id)
            _remember(self, table)
        return table

    def refuse_if_dropped(self) -> None:
        """Raise ``NotFoundError`` if the table no longer exists, even if it is open in this process."""
        _same_table(load_table_at(self.address), self.uuid)


def _received(versions: ProcessVersions, address: TableAddress, uuid: str, schema_id: int) -> TableKey:
    versions.refuse_elsewhere(address.name)
    return TableKey(address=address, uuid=uuid, schema_id=schema_id)


def key_of(table: DynamicTable) -> TableKey:
    """Return the key by which tasks find this table."""
    return TableKey(address=table.address, uuid=table.uuid, schema_id=table.schema.id)


def table_at(address: TableAddress, uuid: str | None = None) -> DynamicTable:
    """Return the current table at an address; the open one if its uuid, schema and snapshots are still current.

    Raises ``NotFoundError`` if ``uuid`` is given and the table at this address has another uuid.
    """
    fresh = _same_table(load_table_at(address), uuid)
    key = key_of(fresh)
    known = _open.get(key)
    if known is not None and not known.inspect.snapshots_are_replaced():
        return known
    _remember(key, fresh)
    return fresh


def _same_table(table: DynamicTable, uuid: str | None) -> DynamicTable:
    if uuid not in (None, table.uuid):
        message = (
            f"table {table.name} was dropped and recreated under the same name; the name now refers to another table. "
            "Load it again, and start streams of it with a checkpoint of their own"
        )
        raise NotFoundError(message)
    return table


def _remember(key: TableKey, table: DynamicTable) -> None:
    while len(_open) >= _OPEN_MAX:
        oldest = _open.pop(next(iter(_open)))
        if oldest.log is not None:
            oldest.log.close()
    _open[key] = table
