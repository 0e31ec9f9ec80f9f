"""Refuses what a compacted topic can't tell, because older records of a key may be missing.

An unchanged value may be one that a record set which is gone by now; a row that is replaced may never have been seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal
from storage_lib.schema.types.row_kind import RETRACT_BIT

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.record_log import RecordLog

_COMPACTED = "the topic is compacted (cleanup.policy), or its configuration can't be read (grant DESCRIBE_CONFIGS)"
_UNAVAILABLE = (
    f"it leaves out the value as unchanged, but {_COMPACTED}: an earlier record with the value may be gone. Let the "
    "database log whole rows (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL), or use cleanup.policy=delete"
)
_OLD_ROW = (
    f"it replaces or deletes a row, but {_COMPACTED}: the record with that row may be gone. Use a table with the "
    "primary key of the source, or cleanup.policy=delete"
)


def sure_changes(changes: CapturedChanges, table: CapturedTable, log: RecordLog) -> CapturedChanges:
    """Refuse the records of a compacted topic that leave out unchanged values, or replace rows of a keyless table."""
    is_retract = (changes.kinds.to_numpy(zero_copy_only=False) & RETRACT_BIT).astype(bool)
    needs_old_rows = table.is_known and (table.needs_old_rows or not table.primary_keys)
    doubtful = {name: mask & ~is_retract for name, mask in changes.unavailable.items() if (mask & ~is_retract).any()}
    if not (doubtful or (needs_old_rows and is_retract.any())) or not log.is_compacted():
        return changes
    refused: dict[int, Refusal] = {}
    for name, mask in doubtful.items():
        for index in np.unique(changes.record_indices[mask]).tolist():
            refused.setdefault(index, Refusal(record_index=index, column=name, reason=_UNAVAILABLE))
    if needs_old_rows:
        for index in np.unique(changes.record_indices[is_retract]).tolist():
            refused.setdefault(index, Refusal(record_index=index, column=None, reason=_OLD_ROW))
    return changes.refusing(list(refused.values()))
