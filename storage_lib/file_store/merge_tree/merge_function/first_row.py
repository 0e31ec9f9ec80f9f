"""``merge-engine=first-row``: the oldest version of a key permanently remains its row."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.merge_tree.merge_function.versions import Versions


@dataclass(frozen=True, kw_only=True)
class FirstRow:
    """Keeps the oldest version. ``table`` is its name in messages."""

    table: str
    order: SequenceOrder = field(default_factory=SequenceOrder)

    @property
    def keeps_newest(self) -> bool:
        """Return False: the oldest version is kept."""
        return False

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return these columns unchanged."""
        return wanted

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """Return rows and kinds unchanged; raises ``InvalidInputError`` for rows of kind ``-U`` or ``-D``."""
        if retracts(kinds).any():
            message = (
                f"table {self.table}: merge-engine=first-row never changes the first row of a key, but the input has "
                "rows of kind -U or -D. Leave them out, or create the table with ignore-delete=true to skip them"
            )
            raise InvalidInputError(message)
        return rows, kinds

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:  # noqa: ARG002  of the protocol
        """Return the first version of each key."""
        return versions.rows.take(pa.array(versions.starts))
