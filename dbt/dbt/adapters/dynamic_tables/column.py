"""Types of columns: dbt's generic names, as the SQL session spells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt.adapters.base.column import Column


@dataclass
class DynamicTablesColumn(Column):
    """A column; ``dtype`` is its type as DESCRIBE shows it."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "TEXT": "STRING",
        "TIMESTAMP": "TIMESTAMP",
        "FLOAT": "DOUBLE",
        "INTEGER": "INT",
        "BIGINT": "BIGINT",
        "NUMERIC": "DECIMAL",
    }

    @property
    def quoted(self) -> str:
        """The name in back quotes."""
        return f"`{self.column}`"

    @property
    def data_type(self) -> str:
        """The whole type: it has its length, precision and scale in it."""
        return self.dtype

    def is_string(self) -> bool:
        """Return whether the column holds text. Its length needs no expansion: STRING has none."""
        return False
