"""``merge-engine=deduplicate``: the newest version of a key is its row; if that retracts, the key has no row."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from storage_lib.file_store.data_file.key_value import VALUE_KIND
from storage_lib.file_store.merge_tree.merge_function.merge_function import without_retracts
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.merge_tree.merge_function.versions import Versions


@dataclass(frozen=True, kw_only=True)
class Deduplicate:
    """Keeps the newest version. Without sequence fields, readers and writers do so themselves, without ``merge``."""

    order: SequenceOrder = field(default_factory=SequenceOrder)

    @property
    def keeps_newest(self) -> bool:
        """Return True without sequence fields."""
        return not self.order.fields

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return these columns and those of the order."""
        return wanted | frozenset(self.order.fields)

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """Return rows and kinds unchanged."""
        return rows, kinds

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:
        """Return the last version of each key."""
        newest = versions.rows.take(pa.array(versions.ends - 1))
        if not final or versions.retracts is None:
            return newest
        return without_retracts(newest, newest.column(VALUE_KIND))


DEDUPLICATE = Deduplicate()
"""Default merge function."""
