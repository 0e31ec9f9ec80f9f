"""Where another process finds a table; picklable, so engines can send it to their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.schema.options.table_options import masked


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAddress:
    """A warehouse directory, a table in it, and the catalog's options (servers, credentials)."""

    warehouse: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __hash__(self) -> int:
        """By value: a mapping has no hash of its own."""
        return hash((self.warehouse, self.name, tuple(sorted(self.options.items()))))

    def __str__(self) -> str:
        """For messages: secrets masked."""
        return f"{self.name} in {self.warehouse} ({masked(self.options)})"
