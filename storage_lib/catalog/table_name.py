"""Names of tables: ``database.table``, usable as directories and as Kafka topics alike."""

from __future__ import annotations

import re
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class TableName:
    """One table of a catalog; ``str`` gives ``database.table`` back."""

    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read ``database.table``; ``InvalidInputError`` for anything else."""
        parts = str(text).split(".")  # a template may have rendered to something else
        if len(parts) != 2 or not all(_PART.fullmatch(part) for part in parts):
            message = (
                f"{text!r} is no table name; write database.table, each part of letters, digits, '_' and '-' "
                "(they become directories and the Kafka topic's name)"
            )
            raise InvalidInputError(message)
        return cls(*parts)

    @property
    def directory(self) -> str:
        """Below the warehouse: ``database.db/table``, as Paimon lays it out."""
        return f"{self.database}.db/{self.table}"

    def __str__(self) -> str:
        """``database.table``."""
        return f"{self.database}.{self.table}"
