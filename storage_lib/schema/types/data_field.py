"""Column of a table or field of a ROW: a name and a type with a permanent id."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.schema.types.data_types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class DataField:
    """Column or ROW field. ``id`` survives renames; columns and ROW fields share one id space."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None
