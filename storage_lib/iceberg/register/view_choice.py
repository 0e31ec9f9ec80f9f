"""What the options of a table's schema ask for: which view, and under which name others find it."""

from __future__ import annotations

from dataclasses import dataclass
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
