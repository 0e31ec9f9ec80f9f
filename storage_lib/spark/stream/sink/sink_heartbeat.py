"""The heartbeat of a streaming sink: one small JSON file, replaced atomically. Does not import pyspark."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from storage_lib.errors import CorruptFileError, NotFoundError
from storage_lib.progress.sink_state import SinkState

if TYPE_CHECKING:
    from storage_lib.io.file_io import FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkHeartbeat:
    """The last report of a sink. Times are epoch milliseconds.

    ``row_count`` counts the rows read since this process started, ``rejected_count`` and ``skipped_count`` the refused
    records of a topic that is applied to the table (docs/cdc.md). ``batch_id`` is the last one finished (None: none
    yet). ``progress_millis`` is the time of the last finished batch, ``written_millis`` of this heartbeat, so a reader
    distinguishes an idle sink from a crashed one. ``error`` begins with the error's class, as does
    ``compaction_error``, the failure of the last compaction, which does not end the sink. ``tiering_error`` is the same
    for the tiering of the log (``log.consistency=eventual``), and ends the sink only if a retry cannot succeed.
    """

    state: SinkState
    pid: int
    started_millis: int
    written_millis: int
    table: str
    query_id: str | None = None
    batch_id: int | None = None
    row_count: int = 0
    rejected_count: int = 0
    skipped_count: int = 0
    progress_millis: int | None = None
    rows_per_second: float | None = None
    error: str | None = None
    compaction_error: str | None = None
    tiering_error: str | None = None

    def to_json(self) -> str:
        """Return the heartbeat as one JSON object."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> SinkHeartbeat:
        """Parse the result of ``to_json``, also of a later release; ``CorruptFileError`` for anything else."""
        try:
            value = json.loads(text)
            known = {field.name for field in fields(cls)}
            return cls(
                **{**{key: each for key, each in value.items() if key in known}, "state": SinkState(value["state"])}
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"invalid sink heartbeat {text[:200]!r}; delete the file, and the sink writes a new one"
            raise CorruptFileError(message) from error


def read_heartbeat(file_io: FileIO, path: str) -> SinkHeartbeat | None:
    """Return the heartbeat at ``path``; None if the sink has not written any."""
    try:
        return SinkHeartbeat.from_json(file_io.read_bytes(path).decode())
    except NotFoundError:
        return None
