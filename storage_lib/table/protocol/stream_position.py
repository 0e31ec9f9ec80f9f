"""Where a stream read stands; JSON, so that any engine can keep it in its checkpoint.

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
    """One place in a stream; everything before it has been read.

    ``snapshot_id`` is the snapshot being read while ``split_index`` is not None, afterwards the newest snapshot
    whose changes have been read (0: none). ``offsets`` is set once the log is being followed; ``snapshot_id``
    then stays the one that the stream started from, for records that repair it or an older one are skipped.
    ``watched_snapshot_id`` is the newest snapshot at which a stream that follows the log has looked whether it was
    untracked; None where nobody asked (``scan.on-untracked=ignore``). ``table_uuid`` names the table, for a position
    means nothing in another one, be it of the same name; None in positions that were made by hand. ``layout`` is the
    number of the table's layout: each has a new log.
    """

    snapshot_id: int
    split_index: int | None = None
    offsets: LogOffsets | None = None
    watched_snapshot_id: int | None = None
    table_uuid: str | None = None
    layout: int = 0

    @property
    def reads_snapshot(self) -> bool:
        """Whether the stream is still inside its first snapshot."""
        return self.split_index is not None

    def to_json(self) -> str:
        """One line of JSON with sorted keys."""
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
        return json.dumps(value, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> StreamPosition:
        """Read what ``to_json`` wrote; ``InvalidInputError`` for anything else."""
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
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{text!r} is not a stream position; pass what StreamPosition.to_json() returned"
            raise InvalidInputError(message) from error
