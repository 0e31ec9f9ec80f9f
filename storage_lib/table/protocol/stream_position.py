"""Position of a stream read, with a JSON form that any engine can store in its checkpoint.

full:            snapshot 7, split 0 ─▶ snapshot 7, split 5 ─▶ log {0: 17, 1: 4} since snapshot 7 ─▶ …
latest, from-timestamp:                                        log {0: 17, 1: 4} ─▶ …
without a log:   snapshot 7, split 0 ─▶ …                   ─▶ after snapshot 7 ─▶ after snapshot 8 ─▶ …
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.log_offsets import LogOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPosition:
    """A position in a stream, up to which everything has been read.

    ``snapshot_id`` is the snapshot that is being read while ``split_index`` is not None, afterwards the newest snapshot
    whose changes have been read (0: none). ``offsets`` is set while the stream follows the log; ``snapshot_id`` is then
    the snapshot at which the stream started, because records that repair it or an older one are skipped.
    ``began_empty``: it started on the empty table, and has read no rows but those of the log.
    ``watched_snapshot_id`` is the newest snapshot that was checked for untracked commits; None with
    ``scan.on-untracked=ignore``. ``table_uuid`` identifies the table, because a position is invalid in another table of
    the same name; None in positions that were created by hand. ``layout`` is the number of the table's layout: each has
    its own log.
    """

    snapshot_id: int
    split_index: int | None = None
    offsets: LogOffsets | None = None
    watched_snapshot_id: int | None = None
    table_uuid: str | None = None
    layout: int = 0
    began_empty: bool = False

    @property
    def reads_snapshot(self) -> bool:
        """Whether the stream still reads its first snapshot."""
        return self.split_index is not None

    def to_json(self) -> str:
        """Return the position as one line of JSON with sorted keys."""
        value: dict[str, object] = {"snapshot": self.snapshot_id}
        if self.split_index is not None:
            value["split"] = self.split_index
        if self.offsets is not None:
            value["log"] = json.loads(self.offsets.to_json())
            if self.offsets.log_id is not None:
                value["log-id"] = self.offsets.log_id
        if self.watched_snapshot_id is not None:
            value["watched"] = self.watched_snapshot_id
        if self.table_uuid is not None:
            value["table"] = self.table_uuid
        if self.layout:
            value["layout"] = self.layout
        if self.began_empty:
            value["began-empty"] = True
        return json.dumps(value, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> StreamPosition:
        """Parse the text of ``to_json``; ``InvalidInputError`` for other text."""
        try:
            value = json.loads(text)
            log = value.get("log")
            return cls(
                snapshot_id=int(value["snapshot"]),
                split_index=None if value.get("split") is None else int(value["split"]),
                offsets=None
                if log is None
                else LogOffsets({int(b): int(o) for b, o in log.items()}, value.get("log-id")),
                watched_snapshot_id=None if value.get("watched") is None else int(value["watched"]),
                table_uuid=None if value.get("table") is None else str(value["table"]),
                layout=int(value.get("layout", 0)),
                began_empty=value.get("began-empty") is True,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{text!r} is not a stream position; pass what StreamPosition.to_json() returned"
            raise InvalidInputError(message) from error
