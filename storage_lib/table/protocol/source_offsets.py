"""Where a table's foreign sources have been read up to, in its snapshots' ``properties`` (docs/format.md).

Rows and offsets are in one snapshot, so each record of a source gets into the table once, despite crashes. Every commit
of ours carries the offsets on, so that the newest of our snapshots tells those of all sources. A snapshot that brings
older content back also brings the offsets of that content back: the next read of the source continues there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from storage_lib.errors import CommitConflictError, CorruptFileError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.encoding.json_document import UNDECODABLE
from storage_lib.schema.options.table_options import OWN_PREFIX

SOURCES = f"{OWN_PREFIX}source-offsets"
IDS = f"{OWN_PREFIX}source-ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange:
    """The records of a source in one commit: from ``start`` up to, not including, ``end``.

    ``start`` is None where nothing of it is in the table yet. ``source`` names it among the table's sources, usually by
    its topic.
    """

    source: str
    start: LogOffsets | None
    end: LogOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOffsets:
    """For every source of a table where to read on."""

    positions: Mapping[str, LogOffsets] = field(default_factory=dict)

    def of(self, source: str) -> LogOffsets | None:
        """Where to read on in ``source``; None if nothing of it is in the table."""
        return self.positions.get(source)

    def advanced(self, by: Sequence[SourceRange]) -> SourceOffsets:
        """These, after a commit of ``by``.

        Raises ``CommitConflictError`` for a range that does not begin where the table ends: somebody else has read the
        source meanwhile, or the table was rolled back.
        """
        for each in by:
            reached = self.of(each.source)
            if not _is_same_place(reached, each.start):
                message = (
                    f"source {each.source!r}: these are its records from {_text(each.start)} on, but the table has it "
                    f"up to {_text(reached)}: it was rolled back, or somebody else has read the same source into it. "
                    "Nothing became visible; read again from where the newest snapshot says"
                )
                raise CommitConflictError(message)
        return SourceOffsets(positions={**self.positions, **{each.source: each.end for each in by}})

    def to_properties(self) -> dict[str, str]:
        """The snapshot properties; none without a source."""
        if not self.positions:
            return {}
        told = sorted(self.positions.items())
        ids = {source: offsets.log_id for source, offsets in told if offsets.log_id is not None}
        properties = {SOURCES: json.dumps({source: json.loads(offsets.to_json()) for source, offsets in told})}
        return {**properties, IDS: json.dumps(ids)} if ids else properties

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> SourceOffsets:
        """As read from a snapshot of ours; ``CorruptFileError`` naming its file if they cannot be decoded."""
        try:
            found, ids = (json.loads(snapshot.properties.get(key, "{}")) for key in (SOURCES, IDS))
            return cls(
                positions={
                    source: LogOffsets.from_json(json.dumps(value), ids.get(source)) for source, value in found.items()
                }
            )
        except UNDECODABLE as error:
            message = f"the properties of {snapshot.origin} that hold source offsets can't be decoded: {error!r}"
            raise CorruptFileError(message) from error


SourcesOf: TypeAlias = Callable[[SourceOffsets], SourceOffsets]
"""The offsets that a snapshot shall tell, from those of the one before it; may raise."""


def as_they_were(sources: SourceOffsets) -> SourceOffsets:
    """Of a commit that reads no source."""
    return sources


def _is_same_place(reached: LogOffsets | None, begun: LogOffsets | None) -> bool:
    return begun is None if reached is None else reached.is_same_place(begun)


def _text(offsets: LogOffsets | None) -> str:
    return "the beginning" if offsets is None else str(offsets)
