"""Source offsets of a micro-batch, read from Spark's checkpoint and recorded in the snapshot of the micro-batch.

<checkpoint>/offsets/<batch>     end offsets of each source in that batch; written before the batch runs
<checkpoint>/commits/<batch>     written after the batch's commit

Each file has a version, a line of settings, and one line of JSON per source; our sources add their name to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io_factory import file_io_of, warehouse_root
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.spark.data_source.offset_stops import STOPS, Offset
from storage_lib.table.protocol.source_offsets import SourceRange

if TYPE_CHECKING:
    from storage_lib.io.file_io import FileIO
    from storage_lib.table.dynamic_table import DynamicTable

SOURCE = "source"
"""Key of the source's name in an offset, next to the entries partition -> offset."""

_TOPIC_ID = "topic-id"
"""Key of the topic's id in an offset, if Kafka reports one: it distinguishes recreated topics of the same name."""

_HEADER_LINES = 2


@dataclass(frozen=True, slots=True)
class CheckpointSources:
    """External sources of one query, by its checkpoint."""

    files: FileIO
    location: str

    @classmethod
    def of(cls, checkpoint_location: str, options: Mapping[str, str]) -> CheckpointSources | None:
        """Return the sources of a checkpoint, or None if only Spark can access its storage.

        Without it, snapshots record no source offsets. ``options`` are the catalog's, for access to the storage.
        """
        try:
            return cls(file_io_of(checkpoint_location, options), warehouse_root(checkpoint_location))
        except InvalidInputError:
            return None

    def ranges(self, batch_id: int) -> tuple[SourceRange, ...]:
        """Return the source ranges of a micro-batch; empty if the checkpoint has no such batch or no such source.

        The first micro-batch has no start, unless it goes through one (``offset_stops``).
        """
        ends = self._ends(batch_id)
        starts = self._ends(batch_id - 1) if ends else {}
        return tuple(
            SourceRange(source=name, start=_start_of(end, starts.get(name)), end=offsets_in(end))
            for name, end in ends.items()
        )

    def refuse_another_past(self, table: DynamicTable, *, by_parts: bool = False) -> None:
        """Refuse a checkpoint that does not continue where the table ends: rows would be lost or duplicated.

        ``by_parts`` as for ``another_past``. Raises ``InvalidInputError`` with the remedy.
        """
        if (why := self.another_past(table, by_parts=by_parts)) is not None:
            message = (
                f"{why}. Start the stream with a new checkpoint_location, and with read_changelog("
                "start=table.inspect.source_offsets(...)), as a streaming sink does by itself: it continues where the "
                "table ends"
            )
            raise InvalidInputError(message)

    def another_past(self, table: DynamicTable, *, by_parts: bool = False) -> str | None:
        """Return how the checkpoint disagrees with the offsets in the table, or None if it continues at its end.

        ``by_parts``: a micro-batch is several commits, of which the table may have some.
        """
        newest = self._newest("offsets")
        if newest is None:
            return None
        is_done = self._newest("commits") == newest
        for each in self.ranges(newest):
            # The snapshot of an unfinished batch may have been committed already.
            begun = (each.start, None) if newest == 0 else (each.start,)
            allowed = (each.end,) if is_done else (*begun, each.end)
            reached = table.inspect.source_offsets(each.source)
            if by_parts and not is_done and is_begun(each, reached):
                continue
            if not any(place is None if reached is None else reached.is_same_place(place) for place in allowed):
                return (
                    f"table {table.name} has source {each.source!r} up to {_text(reached)}, but checkpoint "
                    f"{self.location} continues from {_text(allowed[0])}: the table was rolled back, or "
                    "another process read its source"
                )
        return None

    def refuse_reported_sources(self, table: DynamicTable, batch_id: int | None = None) -> None:
        """Refuse sources whose offsets the table records, for a query whose commits do not record them.

        Another reader has written their records into the table exactly once. This query would write the same records
        again, and older ones would replace newer ones. Checks the sources of the batch ``batch_id``, or of the newest
        batch that was begun.

        Raises ``InvalidInputError`` with the remedy.
        """
        batch = self._newest("offsets") if batch_id is None else batch_id
        for each in () if batch is None else self.ranges(batch):
            reached = table.inspect.source_offsets(each.source)
            if reached is not None:
                message = (
                    f"table {table.name} has source {each.source!r} up to {_text(reached)}, read by ingest or by a "
                    "stream that tells how far it has read. A stream in mode update or complete, or into an eventual "
                    "log, does not, so its rows would come again. Read the source in one way: by ingest, by "
                    "output_mode='append' into a transactional table, or into a table of its own; or say by option "
                    "source=<another name> that this is another source"
                )
                raise InvalidInputError(message)

    def _ends(self, batch_id: int) -> dict[str, Offset]:
        if batch_id < 0:
            return {}
        try:
            text = self.files.read_bytes(f"{self.location}/offsets/{batch_id}").decode()
        except NotFoundError:
            return {}
        found = [json.loads(line) for line in text.splitlines()[_HEADER_LINES:] if line.startswith("{")]
        return {str(offset[SOURCE]): offset for offset in found if SOURCE in offset}

    def _newest(self, directory: str) -> int | None:
        names = (entry.name for entry in self.files.list_directory(f"{self.location}/{directory}"))
        return max((int(name) for name in names if name.isdigit()), default=None)


def is_begun(batch: SourceRange, reached: LogOffsets | None) -> bool:
    """Return whether a table that has ``reached`` these offsets has all before a micro-batch, and nothing after it."""
    if batch.start is None:
        return reached is None or reached.is_same_place(batch.end)
    if reached is None or not reached.is_of(batch.end.log_id):
        return False
    return not reached.distance_to(batch.start) and not batch.end.distance_to(reached)


def offset_of(source: str, offsets: LogOffsets) -> dict[str, Any]:
    """Return the offsets of a source in the JSON form of a checkpoint."""
    return {
        **{str(partition): offset for partition, offset in sorted(offsets.next_offsets.items())},
        SOURCE: source,
        **({} if offsets.log_id is None else {_TOPIC_ID: offsets.log_id}),
    }


def offsets_in(offset: Mapping[str, Any]) -> LogOffsets:
    """Parse the result of ``offset_of``."""
    others = (SOURCE, _TOPIC_ID, STOPS)
    places = {int(partition): int(at) for partition, at in offset.items() if partition not in others}
    return LogOffsets(places, offset.get(_TOPIC_ID))


def _start_of(end: Offset, before: Offset | None) -> LogOffsets | None:
    """Return where the range up to ``end`` begins: at the end of the batch before, or at the first of its stops."""
    begun = before or next((stop for stop in end.get(STOPS, ()) if SOURCE in stop), None)
    return None if begun is None else offsets_in(begun)


def _text(offsets: LogOffsets | None) -> str:
    return "nothing of it" if offsets is None else str(offsets)
