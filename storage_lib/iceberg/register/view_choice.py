"""What the options of a table's schema ask for: which view, and under which name others find it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Self

from storage_lib.iceberg.register.registration import EntryName
from storage_lib.schema.options.table_options import IcebergStorage, IcebergVersion, TableOptions
from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """Place and format version of a view, and the name of its entry in the catalog of others that ``storage`` may mean.

    ``storage`` is DISABLED for a table without a view, and for a place that only other engines know.
    """

    storage: IcebergStorage
    version: IcebergVersion
    entry: EntryName

    @classmethod
    def of(cls, table: str, schema: TableSchema) -> Self:
        """Return the choice of a schema of ``table``, which is ``database.table``."""
        options = TableOptions.parse(schema.options)
        database, _, name = table.partition(".")
        storage = options.iceberg_storage
        return cls(
            storage if isinstance(storage, IcebergStorage) else IcebergStorage.DISABLED,
            options.iceberg_version,
            EntryName(options.iceberg_database or database, options.iceberg_table or name),
        )

    @property
    def registered_as(self) -> tuple[IcebergStorage, EntryName] | None:
        """Kind of catalog and name of the entry; None for a view without one."""
        return (self.storage, self.entry) if self.storage.is_registered else None

    @property
    def entry_text(self) -> str:
        """Kind of catalog and name of the entry as one line of text."""
        return json.dumps([self.storage, self.entry.database, self.entry.table])

    def with_entry(self, text: str) -> Self | None:
        """Return the choice with the entry of an ``entry_text``; None if the text is not one."""
        try:
            storage, database, table = json.loads(text)
            return replace(self, storage=IcebergStorage(storage), entry=EntryName(str(database), str(table)))
        except (ValueError, TypeError):
            return None
