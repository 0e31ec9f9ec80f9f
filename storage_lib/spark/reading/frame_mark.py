"""The table and snapshot of a data frame, as the alias of its plan: so a stream that is joined with it can tell.

A frame may consist of several relations, of Spark's own and of Python tasks; the alias is above all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARK = re.compile(r"(?P<table>.+)@(?P<how>newest|snapshot) (?P<id>\d+)")


@dataclass(frozen=True, slots=True)
class FrameSnapshot:
    """``snapshot_id`` 0 is the table before its first snapshot.

    ``is_named``: the caller named the snapshot, by number, tag or time; otherwise it was the newest.
    """

    table: str
    snapshot_id: int
    is_named: bool

    def alias(self) -> str:
        """Return the alias that ``snapshot_in`` recognises."""
        return f"{self.table}@{'snapshot' if self.is_named else 'newest'} {self.snapshot_id}"


def snapshot_in(alias: str) -> FrameSnapshot | None:
    """Return the snapshot in an alias of a plan; None for any other alias."""
    found = _MARK.fullmatch(alias)
    if found is None:
        return None
    return FrameSnapshot(found["table"], int(found["id"]), found["how"] == "snapshot")
