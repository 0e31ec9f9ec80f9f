"""Record of a commit that outlives its snapshot: its identity, its number, and the facts that a caller gets.

A rollback is a commit as well, and voids the commits that it rolled back: their changes are not in the table any more,
so a commit under the same identity has to make them again. A rollback to one of them brings it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.schema.options.table_options import OWN_PREFIX

BATCH_COMMIT_IDENTIFIER = 9223372036854775807
"""Identifier of batch jobs that have none of their own: never deduplicated (docs/format.md)."""

ROLLED_BACK_TO = f"{OWN_PREFIX}rolled-back-to"
"""Property of the snapshot of a rollback: the id of the snapshot whose content it restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """A commit as its snapshot describes it. ``rolled_back_to`` is None unless the commit is a rollback."""

    snapshot_id: int
    user: str
    identifier: int
    kind: CommitKind
    time_millis: int
    schema_id: int
    total_record_count: int
    delta_record_count: int
    uuid: str | None = None
    rolled_back_to: int | None = None

    @classmethod
    def of(cls, snapshot: Snapshot) -> CommitRecord:
        """Return the record of a snapshot's commit."""
        return cls(
            snapshot_id=snapshot.id,
            user=snapshot.commit_user,
            identifier=snapshot.commit_identifier,
            kind=snapshot.commit_kind,
            time_millis=snapshot.time_millis,
            schema_id=snapshot.schema_id,
            total_record_count=snapshot.total_record_count,
            delta_record_count=snapshot.delta_record_count,
            uuid=snapshot.uuid,
            rolled_back_to=_target_of(snapshot),
        )

    @property
    def has_identity(self) -> bool:
        """Whether the commit can be repeated under its identity."""
        return self.identifier != BATCH_COMMIT_IDENTIFIER

    def snapshot(self) -> Snapshot:
        """Return the snapshot as far as it is known after its expiry: without files, properties and statistics."""
        return Snapshot(
            id=self.snapshot_id,
            schema_id=self.schema_id,
            base_manifest_list="",
            delta_manifest_list="",
            commit_user=self.user,
            commit_identifier=self.identifier,
            commit_kind=self.kind,
            time_millis=self.time_millis,
            total_record_count=self.total_record_count,
            delta_record_count=self.delta_record_count,
            uuid=self.uuid,
        )


def is_in_force(snapshot_id: int, newest_id: int, rollbacks: Mapping[int, int]) -> bool:
    """Return whether the changes of a snapshot count in snapshot ``newest_id``: no rollback has taken them back.

    ``rollbacks`` maps the rollbacks' snapshots to those whose content they restored.
    """
    newest = newest_id
    for rollback in sorted(rollbacks, reverse=True):
        if rollback > newest:
            continue  # it was rolled back itself
        if snapshot_id >= rollback:
            break
        newest = rollbacks[rollback]
    return snapshot_id <= newest


def _target_of(snapshot: Snapshot) -> int | None:
    # The compaction after a rollback has the properties of the rollback.
    text = snapshot.properties.get(ROLLED_BACK_TO)
    is_target = (
        text is not None and text.isascii() and text.isdigit() and snapshot.commit_kind is not CommitKind.COMPACT
    )
    return int(text or 0) if is_target else None
