"""Commits to a table whose log is the table (``log.consistency=eventual``): files are derived from it.

    writers   log ◀── rows, visible as they are stored, at least once; no lease, no transaction
    tiering   lease ─▶ read the log from the newest snapshot's offsets ─▶ files ─▶ snapshot-N with the new offsets

Files and offsets become visible together, so each record of the log is written to the files exactly once: a crash
before ``snapshot-N`` leaves unreferenced files, and the next tiering reads the same records again. Concurrent tierings
wait for the lease; of a stalled tiering and its successor only one can create the snapshot (``TableCommit``). A write
to the files alone (an untracked append) also waits for a lease, and the log is tiered when the lease starts: such rows
come after the existing records of the log and before later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from storage_lib.errors import CommitOutcomeUnknownError, LogOffsetsExpiredError, StorageError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.table.commit.log_repair import LogRepair
from storage_lib.table.commit.snapshot_publisher import SnapshotPublisher
from storage_lib.table.commit.writer_leases import WriterLeases
from storage_lib.table.protocol.lease import Lease
from storage_lib.table.protocol.outcome import outcome
from storage_lib.table.protocol.source_offsets import SourcesOf
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.write_context import WriteContext
from storage_lib.table.write.task_log_writer import FencedLogWriter


class EventualCommit:
    """Tiers the log, and commits rows that tasks have written to it.

    ``repair`` finds rows that other engines appended to the files. ``of_newest_schema`` returns the same object under
    the table's newest schema, for records that were written under it.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        publisher: SnapshotPublisher,
        writer_leases: WriterLeases,
        repair: LogRepair,
        of_newest_schema: Callable[[], EventualCommit | None],
    ) -> None:
        self._table = context.name
        self._environment = context.environment
        self._file_store = context.file_store
        self._leases = context.leases
        self._schema = context.schema
        self._log = repair.log
        self._foreign = repair
        self._publisher = publisher
        self._writer_leases = writer_leases
        self._transaction_timeout_ms = context.options.log_transaction_timeout_ms
        self._of_newest_schema = of_newest_schema

    def with_lease(self, write_context: WriteContext, sources: SourcesOf) -> WriteContext:
        """Return the context with a lease, so that no other writer reads these sources meanwhile.

        Records of the log cannot be undone. Raises ``CommitConflictError`` if the table contains the sources up to
        other offsets.
        """
        lease = self._writer_leases.take(write_context.commit_user, "read a source")
        try:
            sources(self._publisher.source_offsets(self._file_store.snapshots.latest()))
        except BaseException:
            self._writer_leases.release(lease)
            raise
        return replace(write_context, lease=lease)

    def commit(
        self,
        write_context: WriteContext,
        commit_identifier: int,
        *,
        watermark: int | None,
        properties: Mapping[str, str] | None,
        sources: SourcesOf | None,
    ) -> Snapshot | None:
        """Tier the log, which contains the rows of all tasks; the snapshot has this commit's identity.

        Raises as ``TableCommit.commit``, but the rows stay in the log in any case, and the next tiering reads them.
        """
        # From here on the rows are visible in the log, whatever fails.
        with outcome(committed=None):
            return self._tier_commit(write_context, commit_identifier, watermark, properties, sources)

    def _tier_commit(
        self,
        write_context: WriteContext,
        commit_identifier: int,
        watermark: int | None,
        properties: Mapping[str, str] | None,
        sources: SourcesOf | None,
    ) -> Snapshot | None:
        lease = write_context.lease or self._writer_leases.take(write_context.commit_user, "write")
        with self._writer_leases.held(lease):
            earlier = self._publisher.committed(
                write_context.commit_user, commit_identifier, ascending=write_context.identifiers_ascend
            )
            return earlier or self._tier(
                lease,
                commit_user=write_context.commit_user,
                commit_identifier=commit_identifier,
                watermark=watermark,
                properties=properties or {},
                sources=sources,
                even_if_nothing_new=True,
            )

    def tier_log(
        self, *, commit_user: str, commit_identifier: int, skip_expired: bool, purpose: str = "tier the log"
    ) -> Snapshot | None:
        """See ``TableMaintenance.tier_log``."""
        earlier = self._publisher.committed(commit_user, commit_identifier)
        if earlier is not None:
            return earlier
        lease = self._writer_leases.take(commit_user, purpose)
        with self._writer_leases.held(lease):
            return self._tier(
                lease, commit_user=commit_user, commit_identifier=commit_identifier, skip_expired=skip_expired
            )

    def put_in_order(self, lease: Lease) -> int | None:
        """Tier the log under the lease of the commit that follows; return the id of the newest snapshot."""
        self._tier(
            lease,
            commit_user=f"tier-log-{self._environment.new_name()}",
            commit_identifier=BATCH_COMMIT_IDENTIFIER,
        )
        return self._file_store.snapshots.latest_id()

    def _tier(
        self,
        lease: Lease,
        *,
        commit_user: str,
        commit_identifier: int,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        sources: SourcesOf | None = None,
        even_if_nothing_new: bool = False,
        skip_expired: bool = False,
    ) -> Snapshot | None:
        self._under_newest_schema().publish_foreign_appends(lease)
        end = self._log.latest_offsets()
        # Read after the end of the log: all records before that end were written under this schema or an older one.
        newest = self._under_newest_schema()
        base = self._file_store.snapshots.latest()
        write_context = WriteContext(
            commit_user=commit_user, tracked=True, base_snapshot_id=None if base is None else base.id, lease=lease
        )
        start = newest.start_of_tiering(base, skip_expired=skip_expired)
        is_new = not start.is_of(end.log_id) or any(
            offset != start.of(bucket) for bucket, offset in end.next_offsets.items()
        )
        if not is_new and not even_if_nothing_new:
            return None
        return newest.commit_log_part(
            write_context,
            base,
            start,
            end,
            commit_identifier=commit_identifier,
            watermark=watermark,
            properties=properties,
            sources=sources,
        )

    def _under_newest_schema(self) -> EventualCommit:
        return self._of_newest_schema() or self

    def publish_foreign_appends(self, lease: Lease) -> None:
        """Write to the log the rows that other engines, which do not know the log, appended to the files.

        They are written again if this writer crashes before its snapshot, and tiered like other records, in log order.
        """
        missing = self._foreign.find(self._file_store.snapshots.latest_id())
        if not missing:
            return
        share = FencedLogWriter(
            lease=lease,
            table=self._table,
            log=self._log,
            leases=self._leases,
            only_task=True,
            clock=self._environment.clock,
            timeout_ms=self._transaction_timeout_ms,
        )
        try:
            for each in missing:
                for _, rows, kinds in self._foreign.changes_of(each):
                    share.write(each.bucket, rows, kinds)
            share.flush()
        except BaseException:
            share.abort()
            raise

    def start_of_tiering(self, base: Snapshot | None, *, skip_expired: bool) -> LogOffsets:
        """Return the offsets up to which ``base`` contains the log; with ``skip_expired`` at least the earliest."""
        start = self._publisher.offsets_of(base) or LogOffsets()
        if not skip_expired:
            return start
        earliest = self._log.earliest_offsets()
        return start.in_log(earliest.log_id).advanced_to(earliest.next_offsets)

    def commit_log_part(
        self,
        write_context: WriteContext,
        base: Snapshot | None,
        start: LogOffsets,
        end: LogOffsets,
        *,
        commit_identifier: int,
        watermark: int | None,
        properties: Mapping[str, str] | None,
        sources: SourcesOf | None = None,
    ) -> Snapshot:
        """Commit the records from ``start`` up to ``end`` as files, and ``end`` as offsets, in one snapshot."""
        write = self._file_store.new_write(base)
        try:
            for rows, kinds in self._changes(start, end):
                for partition, bucket, indices in group_rows(rows, self._schema):
                    everything = len(indices) == rows.num_rows
                    group = rows if everything else rows.take(pa.array(indices))
                    write.write(partition, bucket, group, kinds if everything else kinds.take(pa.array(indices)))
            files = write.prepare_commit()
            snapshot, _ = self._publisher.publish(
                write_context,
                commit_identifier=commit_identifier,
                files=files,
                watermark=watermark,
                properties=properties,
                reached=end,
                sources=sources,
            )
        except CommitOutcomeUnknownError:
            raise
        except BaseException:
            # The original error matters more than a failed cleanup.
            with suppress(StorageError):
                write.abort()
            raise
        return snapshot

    def _changes(self, start: LogOffsets, end: LogOffsets) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        try:
            for batch in self._log.read(start, end):
                if batch.rows.num_rows:
                    yield batch.rows, batch.kinds
        except LogOffsetsExpiredError as error:
            message = (
                f"table {self._table}: records of the log were deleted before they got into the files, which end at "
                f"offsets {start.to_json()}: {error}. Tier more often (log.tier-interval), or make the next table with "
                "a longer log.retention; tier_log(skip_expired=True) continues with what the log still holds, "
                "without the rest"
            )
            raise LogOffsetsExpiredError(message) from error
