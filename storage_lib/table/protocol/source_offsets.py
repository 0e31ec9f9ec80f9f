"""Offsets up to which a table contains external sources, in its snapshots' ``properties`` (docs/format.md).

Rows and offsets are in one snapshot, so each record of a source is written to the table once, despite crashes. Every
commit of this library copies the offsets, so that its newest snapshot has those of all sources. A snapshot that
restores older content also restores the offsets of that content: the next read of the source resumes there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from storage_lib.errors import CommitConflictError, CorruptFileError, InvalidInputError
from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.encoding.json_document import UNDECODABLE
from storage_lib.schema.options.table_options import OWN_PREFIX

SOURCES = f"{OWN_PREFIX}source-offsets"
IDS = f"{OWN_PREFIX}source-ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange:
    """The records of a source in one commit: from ``start`` up to, not including, ``end``.

    ``start`` is None if the table contains nothing of the source yet. ``source`` names it among the table's sources,
    usually by its topic.
    """

    source: str
    start: LogOffsets | None
    end: LogOffsets


def ranges_to_json(ranges: Sequence[SourceRange]) -> str:
    """Return ranges as text for an engine's options."""
    return json.dumps([[each.source, _to_pair(each.start), _to_pair(each.end)] for each in ranges])


def ranges_of_json(text: str) -> tuple[SourceRange, ...]:
    """Parse the text of ``ranges_to_json``; ``InvalidInputError`` for other text."""
    try:
        return tuple(
            SourceRange(source=source, start=None if start is None else _of_pair(start), end=_of_pair(end))
            for source, start, end in json.loads(text)
        )
    except (ValueError, TypeError, AttributeError) as error:
        message = f"{text!r} is not a list of source ranges; pass what ranges_to_json() returned"
        raise InvalidInputError(message) from error


def _to_pair(offsets: LogOffsets | None) -> list[str | None] | None:
    return None if offsets is None else [offsets.to_json(), offsets.log_id]


def _of_pair(pair: Sequence[str | None]) -> LogOffsets:
    offsets, log_id = pair
    return LogOffsets.from_json(str(offsets), log_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOffsets:
    """Offsets at which reads of a table's sources resume, by source, and the records before them that were rejected."""

    positions: Mapping[str, LogOffsets] = field(default_factory=dict)
    rejected: RejectedPointer | None = None

    def of(self, source: str) -> LogOffsets | None:
        """Return the offsets at which reads of ``source`` resume; None if the table contains nothing of it."""
        return self.positions.get(source)

    def advanced(self, by: Sequence[SourceRange]) -> SourceOffsets:
        """Return the offsets after a commit of the ranges ``by``.

        Raises ``CommitConflictError`` for a range that does not begin where the table ends: another process has read
        the source meanwhile, or the table was rolled back.
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
        return replace(self, positions={**self.positions, **{each.source: each.end for each in by}})

    def to_properties(self) -> dict[str, str]:
        """Return the snapshot properties; none without a source and rejected records."""
        rejected = {} if self.rejected is None else self.rejected.to_properties()
        if not self.positions:
            return rejected
        ordered = sorted(self.positions.items())
        ids = {source: offsets.log_id for source, offsets in ordered if offsets.log_id is not None}
        properties = {SOURCES: json.dumps({source: json.loads(offsets.to_json()) for source, offsets in ordered})}
        return {**properties, **({IDS: json.dumps(ids)} if ids else {}), **rejected}

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> SourceOffsets:
        """Decode the properties of this library's snapshot; ``CorruptFileError`` with its file if they are invalid."""
        try:
            found, ids = (json.loads(snapshot.properties.get(key, "{}")) for key in (SOURCES, IDS))
            return cls(
                positions={
                    source: LogOffsets.from_json(json.dumps(value), ids.get(source)) for source, value in found.items()
                },
                rejected=RejectedPointer.of_properties(snapshot.properties, snapshot.origin),
            )
        except UNDECODABLE as error:
            message = f"the properties of {snapshot.origin} that hold source offsets can't be decoded: {error!r}"
            raise CorruptFileError(message) from error


SourcesOf: TypeAlias = Callable[[SourceOffsets], SourceOffsets]
"""Computes the offsets of a new snapshot from those of the previous one; may raise."""


def as_they_were(sources: SourceOffsets) -> SourceOffsets:
    """Return the offsets unchanged, for a commit that reads no source."""
    return sources


def _is_same_place(reached: LogOffsets | None, begun: LogOffsets | None) -> bool:
    return begun is None if reached is None else reached.is_same_place(begun)


def _text(offsets: LogOffsets | None) -> str:
    return "the beginning" if offsets is None else str(offsets)
