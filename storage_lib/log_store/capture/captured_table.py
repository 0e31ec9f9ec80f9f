"""What the decoders of captured records have to know about the table that the changes are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.schema.options.source_options import BeforeImage

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.log_store.conversion.capture_modes import CaptureModes
    from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTable:
    """``schema`` has the table's columns and key; picklable.

    ``needs_old_rows``: each update and deletion has to tell the whole old row, because the table has no key to find it
    by, or combines the rows of a key. ``modes`` say how values are written. ``is_known`` is false if the changes are
    read without a table, with keys only if the reader declares them.
    """

    schema: TableSchema
    modes: CaptureModes
    before_image: BeforeImage = BeforeImage.AUTO
    needs_old_rows: bool = False
    is_known: bool = True

    @property
    def columns(self) -> pa.Schema:
        """The table's columns."""
        return self.schema.arrow_schema

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Columns of the table's primary key, empty without one."""
        return tuple(self.schema.primary_keys)
