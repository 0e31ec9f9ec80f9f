"""``merge-engine=deduplicate``: the newest version of a key is its row; if that retracts, there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from storage_lib.file_store.data_file.key_value import VALUE_KIND
from storage_lib.file_store.merge_tree.merge_function.merge_function import without_retracts
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.merge_tree.merge_function.versions import Versions


@dataclass(frozen=True, kw_only=True)
class Deduplicate:
    """Where the order of arrival decides, the merge itself does it all, and this class is only asked whether it may."""

    order: SequenceOrder = field(default_factory=SequenceOrder)

    @property
    def keeps_newest(self) -> bool:
        """If no column says otherwise."""
        return not self.order.fields

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """These, and what tells their age."""
        return wanted | frozenset(self.order.fields)

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """As they are."""
        return rows, kinds

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:
        """The last version of each key."""
        newest = versions.rows.take(pa.array(versions.ends - 1))
        if not final or versions.retracts is None:
            return newest
        return without_retracts(newest, newest.column(VALUE_KIND))


DEDUPLICATE = Deduplicate()
"""The engine of a table that names none."""
