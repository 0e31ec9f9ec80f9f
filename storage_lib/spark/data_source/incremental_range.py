"""The range and mode of an incremental batch read, parsed from options with Paimon's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.table.changelog.change_scan import ChangeMode

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.change_split import ChangeSplit

BETWEEN = "incremental-between"
BETWEEN_TIMESTAMP = "incremental-between-timestamp"
SCAN_MODE = "incremental-between-scan-mode"
RANGE_OPTIONS = (BETWEEN, BETWEEN_TIMESTAMP, SCAN_MODE)
_MODES = {
    "auto": ChangeMode.NET,
    "diff": ChangeMode.NET,
    "net": ChangeMode.NET,
    "changelog": ChangeMode.EVERY,
    "every": ChangeMode.EVERY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalRange:
    """Range of changes, by snapshots or by time.

    ``snapshots`` are ids or tags, the first exclusive, the last inclusive. ``times`` are epoch milliseconds,
    ``[start, end)``.
    """

    snapshots: tuple[str, str] | None = None
    times: tuple[int, int] | None = None
    mode: ChangeMode = ChangeMode.NET

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> IncrementalRange | None:
        """Return the range in a statement's options, or None for an ordinary read.

        Raises ``InvalidInputError`` naming the option.
        """
        if BETWEEN not in given and BETWEEN_TIMESTAMP not in given:
            if SCAN_MODE in given:
                message = f"option {SCAN_MODE} needs a range; set {BETWEEN} as well"
                raise InvalidInputError(message)
            return None
        if BETWEEN in given and BETWEEN_TIMESTAMP in given:
            message = f"a read takes one range; set {BETWEEN} or {BETWEEN_TIMESTAMP}, not both"
            raise InvalidInputError(message)
        mode = _MODES.get(given.get(SCAN_MODE, "auto").lower())
        if mode is None:
            message = f"option {SCAN_MODE} = {given[SCAN_MODE]!r}; use one of {', '.join(_MODES)}"
            raise InvalidInputError(message)
        if BETWEEN in given:
            return cls(snapshots=_pair(BETWEEN, given[BETWEEN]), mode=mode)
        start, end = _pair(BETWEEN_TIMESTAMP, given[BETWEEN_TIMESTAMP])
        return cls(times=(_millis(start), _millis(end)), mode=mode)

    def plan(self, table: DynamicTable) -> tuple[ChangeSplit, ...]:
        """Plan the range as splits for tasks; raises as ``ReadBuilder.plan_changes``."""
        if self.times is not None:
            start, end = self.times
            return table.new_read().plan_changes(start_timestamp=start, end_timestamp=end, mode=self.mode)
        first, last = self.snapshots or ("0", "0")
        return table.new_read().plan_changes(
            start_snapshot_id=_snapshot_id(table, first), end_snapshot_id=_snapshot_id(table, last), mode=self.mode
        )


def _snapshot_id(table: DynamicTable, text: str) -> int:
    return int(text) if text.isdigit() else table.tags.load(text).snapshot.id


def _pair(key: str, text: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        message = f"invalid range in option {key} = {text!r}; write start,end"
        raise InvalidInputError(message)
    return parts[0], parts[1]


def _millis(text: str) -> int:
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        message = (
            f"invalid timestamp {text!r} in option {BETWEEN_TIMESTAMP}; write epoch milliseconds, or a time "
            "with its zone "
            "such as 2024-05-14T01:00:00Z"
        )
        raise InvalidInputError(message)
    return round(moment.timestamp() * 1000)
