"""One column of a table, or one field of a ROW: a name and a type under an id that is its own for life."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.schema.types.data_types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class DataField:
    """``id`` is kept whatever the field is renamed to; columns and fields of ROWs share one space of ids."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None
