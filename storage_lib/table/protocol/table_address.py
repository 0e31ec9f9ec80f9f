"""Address at which another process loads a table; picklable, so engines can send it to their tasks."""

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
        """Hash by value, because a mapping is not hashable."""
        return hash((self.warehouse, self.name, tuple(sorted(self.options.items()))))

    def __str__(self) -> str:
        """Return a text for messages, with secrets masked."""
        return f"{self.name} in {self.warehouse} ({masked(self.options)})"
