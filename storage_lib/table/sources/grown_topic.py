"""Partitions that a topic has got since a table read it last: records of a key may then be in two of them.

    partitions 0, 1      key a in partition 1:  a1 a2 | a3     "|" is where the table has read up to
    partitions 0, 1, 2   key a in partition 0:           a4    read before a3, which is older

Only the source's own order tells which row is the newest. It is in the records' metadata (``source.metadata``).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from storage_lib.schema.options.source_options import METADATA

if TYPE_CHECKING:
    from storage_lib.log_store.log_offsets import LogOffsets
    from storage_lib.table.dynamic_table import DynamicTable

_log = logging.getLogger(__name__)


def has_grown(recorded: LogOffsets, end: LogOffsets) -> bool:
    """Whether there are partitions of which nothing has been read yet, though others have been.

    Added partitions are the last that are read, so this still holds for a run after one that has ended early.
    """
    if not recorded.next_offsets or not recorded.is_of(end.log_id):
        return False
    return not end.next_offsets.keys() <= recorded.next_offsets.keys()


def warn_of_growth(table: DynamicTable, topic: str, recorded: LogOffsets, end: LogOffsets) -> None:
    """Log a warning if older rows may win in a table with a key."""
    if not table.schema.primary_keys:
        return
    grown = (
        f"topic {topic!r} had {len(recorded.next_offsets)} partitions when table {table.name} read it last, and has "
        f"{len(end.next_offsets)} now. Partitions are read one after the other, and"
    )
    if not table.options.sequence_field:
        _log.warning(
            "%s an older row of a key that has moved to another partition may replace a newer one. Read a topic to its "
            "end before you add partitions; or create the table with sequence.field=<column> and "
            "compaction.keep-deletes=true, and fill that column from the order of the source, such as "
            "%s='<column> = value.source.lsn'",
            *(grown, METADATA),
        )
    elif not table.options.compaction_keep_deletes:
        _log.warning(
            "%s a compaction may drop the deletion of a key that has moved before an older row of it is read, which "
            "then stays. Create the table with compaction.keep-deletes=true",
            grown,
        )
