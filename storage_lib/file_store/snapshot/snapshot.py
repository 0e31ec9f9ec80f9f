"""Root of all data committed at one moment; its JSON is described in docs/format.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from html import escape


class CommitKind(StrEnum):
    """Kind of a commit."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Version ``id`` of a table.

    ``unknown`` keeps fields of other writers that are preserved but not interpreted. ``source`` is the file that the
    snapshot was read from, for errors; it is not part of the snapshot.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int
    delta_record_count: int
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    changelog_record_count: int | None = None
    index_manifest: str | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    next_row_id: int | None = None
    operation: str | None = None
    uuid: str | None = None
    version: int = 3
    unknown: Mapping[str, object] = field(default_factory=dict)
    source: str | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        made = datetime.fromtimestamp(self.time_millis / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
        return f"<Snapshot {self.id}: {self.commit_kind} at {made}, {self.delta_record_count:+,} records>"

    def _repr_html_(self) -> str:
        facts = {
            "snapshot": self.id,
            "kind": self.commit_kind,
            "epoch milliseconds": self.time_millis,
            "schema": self.schema_id,
            "commit user": self.commit_user,
            "commit identifier": self.commit_identifier,
            "records added": self.delta_record_count,
            "records in all": self.total_record_count,
        }
        rows = "".join(f"<tr><th>{name}</th><td>{escape(str(fact))}</td></tr>" for name, fact in facts.items())
        return f"<table><tbody>{rows}</tbody></table>"

    @property
    def has_files(self) -> bool:
        """Whether the files are known; they are not of an expired snapshot that a repeated commit found."""
        return bool(self.delta_manifest_list)

    @property
    def origin(self) -> str:
        """Name of the snapshot in errors: its file, or its number if it was not read from a file."""
        return self.source or f"snapshot {self.id}"
