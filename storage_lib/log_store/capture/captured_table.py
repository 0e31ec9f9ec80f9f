"""What the decoders of captured records have to know about the table that the changes are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.schema.options.source_options import BeforeImage

if TYPE_CHECKING:
    from storage_lib.log_store.conversion.capture_modes import CaptureModes
    from storage_lib.log_store.metadata.metadata_column import MetadataColumn
    from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTable:
    """``schema`` has the key and the columns that rows of the source fill; picklable.

    ``metadata`` are the other columns, in the table's order, and ``topic`` is the name of the records' topic.
    ``ignores_tombstones``: a record before each tombstone deletes its key already.
    ``needs_old_rows``: each update and deletion has to tell the whole old row, because the table has no key to find it
    by, or combines the rows of a key. ``modes`` say how values are written. ``is_known`` is false if the changes are
    read without a table, with keys only if the reader declares them.
    """

    schema: TableSchema
    modes: CaptureModes
    before_image: BeforeImage = BeforeImage.AUTO
    needs_old_rows: bool = False
    is_known: bool = True
    metadata: tuple[MetadataColumn, ...] = ()
    topic: str = ""
    ignores_tombstones: bool = False

    @property
    def columns(self) -> pa.Schema:
        """The table's columns that rows of the source fill."""
        return self.schema.arrow_schema

    @property
    def every_column(self) -> pa.Schema:
        """The table's columns, in order."""
        columns = list(self.columns)
        for each in self.metadata:
            columns.insert(each.place, pa.field(each.field.name, each.field.type.arrow))
        return pa.schema(columns)

    @property
    def metadata_names(self) -> tuple[str, ...]:
        """Columns that are filled from the metadata of records."""
        return tuple(each.field.name for each in self.metadata)

    @property
    def requires_metadata(self) -> bool:
        """Whether a record without some metadata of its value is refused."""
        return any(each.is_required and each.metadata.path is not None for each in self.metadata)

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Columns of the table's primary key, empty without one."""
        return tuple(self.schema.primary_keys)
