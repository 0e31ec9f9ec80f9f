"""Tables that this Python process has open, so that micro-batches reuse Kafka connections and parsed manifests.

Spark keeps its Python processes between tasks and between micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.catalog.open_catalog import load_table_at
from storage_lib.errors import NotFoundError

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress

_OPEN_MAX = 32
_open: dict[TableKey, DynamicTable] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKey:
    """Which table, exactly: one that was dropped and made again, or altered, under the same address is another."""

    address: TableAddress
    uuid: str
    schema_id: int

    @property
    def name(self) -> str:
        """``db.table``, for messages."""
        return self.address.name

    def table(self) -> DynamicTable:
        """The open table of this process; ``NotFoundError`` if it is not there any more."""
        table = _open.get(self)
        if table is None:
            # Under the very schema that the driver has: another may have come since.
            table = _same_table(load_table_at(self.address), self.uuid).refresh(schema_id=self.schema_id)
            _remember(self, table)
        return table

    def refuse_if_gone(self) -> None:
        """Look whether the table is still there, also if it is open: ``NotFoundError`` if not."""
        _same_table(load_table_at(self.address), self.uuid)


def key_of(table: DynamicTable) -> TableKey:
    """The key under which tasks find this table again."""
    return TableKey(address=table.address, uuid=table.uuid, schema_id=table.schema.id)


def table_at(address: TableAddress, uuid: str | None = None) -> DynamicTable:
    """The table as it is now: loaded again, or the open one if that is still the same.

    Raises ``NotFoundError`` if ``uuid`` is given and another table has taken its place.
    """
    fresh = _same_table(load_table_at(address), uuid)
    key = key_of(fresh)
    known = _open.get(key)
    if known is not None:
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
