"""Creates snapshots with their properties: the offsets of the log and of external sources.

Checks right before a snapshot is created refuse the commit if the lease was lost or conflicting rows were committed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import (
    CommitConflictError,
    CorruptFileError,
    LeaseLostError,
    NotFoundError,
    SnapshotExpiredError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, CommitMessage, Committable
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.commit.log_repair import LogRepair
from storage_lib.table.commit.reserved_partitions import ReservedPartitions
from storage_lib.table.commit.restored_rows import check_newer_than_restored
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction, SnapshotLogProperties
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourcesOf, as_they_were
from storage_lib.table.protocol.write_context import WriteContext
from storage_lib.table.stream.log_offset_resolver import reported_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
    from storage_lib.table.protocol.table_context import TableContext

_LOGGER = logging.getLogger(__name__)


class SnapshotPublisher:
    """Publishes the snapshots of one table.

    ``repair`` is None for a table without a log. In a table that ``adds_up`` committed rows, a difference must be
    computed from the current content. ``reserves``: partitions whose rows no other commit may have changed while a
    commit was written.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        repair: LogRepair | None,
        adds_up: bool = False,
        reserves: ReservedPartitions = ReservedPartitions.NONE,
    ) -> None:
        self._table = context.name
        self._file_store = context.file_store
        self._leases = context.leases
        self._repair = repair
        self._log = None if repair is None else repair.log
        self._adds_up = adds_up
        self._numbers_rows = bool(context.schema.primary_keys)
        self._reserves = reserves

    def committed(self, commit_user: str, commit_identifier: int, *, ascending: bool = False) -> Snapshot | None:
        """Return the snapshot of an earlier commit under this identity, or None; also commits its log transactions.

        ``ascending`` as ``WriteContext.identifiers_ascend``.
        """
        if commit_identifier == BATCH_COMMIT_IDENTIFIER:
            return None
        snapshot = self._file_store.snapshots.find_commit(commit_user, commit_identifier, ascending=ascending)
        if snapshot is not None and self._repair is not None:
            part = SnapshotLogProperties.of_snapshot(snapshot)
            if part is not None and part.transactions and self._repair.is_of_log(snapshot, part):
                self._repair.finish(part)
        return snapshot

    def publish(
        self,
        write_context: WriteContext,
        *,
        commit_identifier: int,
        files: tuple[CommitMessage, ...] = (),
        transactions: tuple[BucketTransaction, ...] = (),
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        covers_from: Mapping[int, int] | None = None,
        reached: LogOffsets | None = None,
        sources: SourcesOf | None = None,
    ) -> tuple[Snapshot, SnapshotLogProperties]:
        """Create the next snapshot: the commit point. Raises as ``TableCommit.commit``, without cleaning up.
        ``reached``: the log offsets up to which records were read into ``files``, starting at the previous snapshot's
        offsets. ``covers_from``: for each bucket whose log was repaired, the snapshot after which the repair starts.
        """
        part = SnapshotLogProperties(
            tracked=write_context.tracked,
            lease_number=None if write_context.lease is None else write_context.lease.number,
            transactions=transactions,
            covers_from=covers_from or {},
        )

        def properties_of(previous: Snapshot | None) -> Mapping[str, str]:
            read_up_to = self._current(sources or as_they_were, previous).to_properties()
            if self._log is None:
                return {**part.to_properties(), **read_up_to, **(properties or {})}
            offsets = self.offsets_of(previous) or LogOffsets()
            if reached is not None:
                offsets = offsets.in_log(reached.log_id).advanced_to(reached.next_offsets)
            elif transactions:
                written = {each.written.bucket: each.written.next_offset for each in transactions}
                offsets = offsets.in_log(self._log.log_id()).advanced_to(written)
            return {
                **part.to_properties(),
                **SnapshotLogProperties(tracked=part.tracked, offsets=offsets).to_properties(),
                **read_up_to,
                **(properties or {}),
            }

        snapshot = self._file_store.commit.commit(
            Committable(
                commit_user=write_context.commit_user,
                commit_identifier=commit_identifier,
                messages=files,
                watermark=watermark,
            ),
            guard=self._guard(write_context, files),
            properties_of=properties_of,
            identifiers_ascend=write_context.identifiers_ascend,
            is_overwrite=write_context.overwrite is not None,
        )
        return snapshot, part

    def carried_forward(
        self, previous: Snapshot | None, sources: SourcesOf = as_they_were, *, tracked: bool = False
    ) -> Mapping[str, str]:
        """Return the properties of a commit that is not in the log: the offsets of ``previous``.

        ``tracked``: streams of a table without a log read the commit's changes.
        """
        offsets = self.offsets_of(previous)
        if previous is None and self._log is not None:
            offsets = LogOffsets()  # a branch may be published before the table has had a commit of its own
        return {
            **SnapshotLogProperties(tracked=tracked, offsets=offsets).to_properties(),
            **self._current(sources, previous).to_properties(),
        }

    def _current(self, sources: SourcesOf, previous: Snapshot | None) -> SourceOffsets:
        """Return what ``sources`` computes for the snapshot after ``previous``, without expired rejected records."""
        offsets = sources(self.source_offsets(previous))
        rejected = offsets.rejected
        if rejected is None or not self._file_store.has_expired(rejected):
            return offsets
        try:
            return replace(offsets, rejected=self._file_store.rejected_change().upon(rejected))
        except (CorruptFileError, NotFoundError) as error:
            # The commit that comes has nothing to do with them.
            _LOGGER.warning("table %s: its expired rejected records are not removed: %s", self._table, error)
            return offsets

    def source_offsets(self, snapshot: Snapshot | None, history: SnapshotHistory | None = None) -> SourceOffsets:
        """Return the offsets of external sources in a snapshot, of the table or of the branch with this ``history``."""
        newest = _newest_of_ours(history or self._file_store.snapshots, snapshot)
        return SourceOffsets() if newest is None else SourceOffsets.of_snapshot(newest)

    def newest_of_ours(self) -> Snapshot | None:
        """Return the newest snapshot that this library created."""
        return _newest_of_ours(self._file_store.snapshots, self._file_store.snapshots.latest())

    def offsets_of(self, previous: Snapshot | None) -> LogOffsets | None:
        """Return the log offsets up to which a snapshot's files contain the log; None if no snapshot records them."""
        return reported_offsets(self._file_store.snapshots, previous)

    def _guard(self, write_context: WriteContext, files: Sequence[CommitMessage]) -> Callable[[Snapshot | None], None]:
        """Return a check, run before a snapshot, that the lease is still held and no other writer has committed."""

        def guard(latest: Snapshot | None) -> None:
            self._refuse_moved_keys(write_context, files, latest)
            if write_context.reads_base:
                self._refuse_replaced_rows(write_context, files, latest)
            if self._numbers_rows and write_context.overwrite is None:
                base_id = write_context.base_snapshot_id or 0
                check_newer_than_restored(self._table, self._file_store, files, base_id=base_id, latest=latest)
            lease = write_context.lease
            if lease is None:
                return
            self._leases.check(lease)
            for snapshot_id, snapshot in self._since_base(write_context, latest):
                if snapshot is None:
                    message = (
                        f"table {self._table}: snapshot {snapshot_id} was made and expired while this commit was being "
                        "written, so it is not known whose lease it was. Nothing became visible; write again, and "
                        "keep more snapshots (expire_snapshots(retain_last=...)) if this recurs"
                    )
                    raise LeaseLostError(message)
                if write_context.is_difference and self._adds_up and snapshot.commit_kind is CommitKind.OVERWRITE:
                    message = (
                        f"table {self._table}: snapshot {snapshot_id} replaced rows that this commit removes as well: "
                        f"its difference was computed from snapshot {write_context.base_snapshot_id}, and would now "
                        "remove them twice. Nothing was committed; run it again"
                    )
                    raise CommitConflictError(message)
                between = SnapshotLogProperties.of_snapshot(snapshot)
                appended_by_stranger = between is None and snapshot.commit_kind is CommitKind.APPEND
                in_another_lease = between is not None and between.lease_number not in (None, lease.number)
                if appended_by_stranger or in_another_lease:
                    message = (
                        f"table {self._table}: snapshot {snapshot_id} was committed under another writer's lease after "
                        f"this commit started upon snapshot {write_context.base_snapshot_id}. Nothing became visible; "
                        "write again"
                    )
                    raise LeaseLostError(message)

        return guard

    def _since_base(
        self, write_context: WriteContext, latest: Snapshot | None
    ) -> Iterator[tuple[int, Snapshot | None]]:
        return self._file_store.snapshots.since(write_context.base_snapshot_id, None if latest is None else latest.id)

    def _refuse_moved_keys(
        self, write_context: WriteContext, files: Sequence[CommitMessage], latest: Snapshot | None
    ) -> None:
        """Refuse rows whose buckets were assigned from an outdated base: a key added since would be stored twice."""
        if self._reserves is ReservedPartitions.NONE:
            return
        partitions = {message.partition for message in files}
        for snapshot_id, snapshot in self._since_base(write_context, latest):
            if snapshot is not None and snapshot.commit_kind not in (CommitKind.APPEND, CommitKind.OVERWRITE):
                continue
            changed = self._changed_partitions(snapshot, unknown=partitions)
            if changed & partitions or (changed and self._reserves is ReservedPartitions.ALL):
                message = (
                    f"table {self._table}: snapshot {snapshot_id} changed rows after snapshot "
                    f"{write_context.base_snapshot_id or 0}, by which this commit's rows got their buckets. "
                    "Nothing became visible; run it again"
                )
                raise CommitConflictError(message)

    def _refuse_replaced_rows(
        self, write_context: WriteContext, files: Sequence[CommitMessage], latest: Snapshot | None
    ) -> None:
        """Refuse rows that were computed from others which an overwrite has replaced since, without a lease.

        Where it replaced partitions that this commit does not write, its rows come after this commit's.
        """
        partitions = {message.partition for message in files}
        for snapshot_id, snapshot in self._since_base(write_context, latest):
            if snapshot is None or snapshot.commit_kind is not CommitKind.OVERWRITE:
                continue
            if self._changed_partitions(snapshot, unknown=partitions) & partitions:
                message = (
                    f"table {self._table}: snapshot {snapshot_id} replaced rows of snapshot "
                    f"{write_context.base_snapshot_id or 0}, from which the rows of this commit were computed. Nothing "
                    "became visible; run it again"
                )
                raise CommitConflictError(message)

    def _changed_partitions(self, snapshot: Snapshot | None, *, unknown: set[bytes]) -> set[bytes]:
        """Return the partitions whose rows a snapshot changed; ``unknown`` if it has expired."""
        if snapshot is not None:
            with suppress(SnapshotExpiredError):
                return {partition for partition, _ in self._file_store.scan.changed_buckets(snapshot)}
        return unknown


def _newest_of_ours(history: SnapshotHistory, snapshot: Snapshot | None) -> Snapshot | None:
    """Return the newest snapshot up to ``snapshot`` by this library: other writers do not copy its properties."""
    ours = (each for each in history.up_to(snapshot) if SnapshotLogProperties.of_snapshot(each) is not None)
    return next(ours, None)
