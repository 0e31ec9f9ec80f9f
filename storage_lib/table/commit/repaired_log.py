"""Keeps the log of a table complete by publishing missing committed changes again from the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import CommitOutcomeUnknownError, UnavailableError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.io.after_commit import after_commit
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction, SnapshotLogProperties
from storage_lib.table.protocol.write_context import WriteContext

if TYPE_CHECKING:
    from storage_lib.table.commit.log_repair import LogRepair, MissingChanges
    from storage_lib.table.commit.snapshot_publisher import SnapshotPublisher
    from storage_lib.table.commit.writer_leases import WriterLeases
    from storage_lib.table.protocol.lease import Lease
    from storage_lib.table.protocol.table_context import TableContext

_REPAIR_ATTEMPTS_MAX = 5


class RepairedLog:
    """The log of a table whose snapshots decide on log transactions (``log.consistency=transactional``)."""

    def __init__(
        self, context: TableContext, *, repair: LogRepair, publisher: SnapshotPublisher, writer_leases: WriterLeases
    ) -> None:
        self._table = context.name
        self._environment = context.environment
        self._snapshots = context.file_store.snapshots
        self._repair = repair
        self._publisher = publisher
        self._writer_leases = writer_leases

    def put_in_order(self, lease: Lease, newest: int | None) -> int | None:
        """Repair the log up to snapshot ``newest`` until it is complete; return the snapshot for which that holds."""
        base, missing = newest, self._repair.find(newest)
        self._writer_leases.fence_previous_holder(lease)
        for _ in range(_REPAIR_ATTEMPTS_MAX):
            if not missing:
                return base
            self._publish(lease, base, missing)
            # The repair's own transaction may have been lost like the one it repairs.
            base = self._snapshots.latest_id()
            missing = self._repair.find(base)
        message = (
            f"table {self._table}: its log could not be completed in {_REPAIR_ATTEMPTS_MAX} attempts, for every "
            "transaction was aborted after its snapshot. Raise log.transaction.timeout, look at the brokers' logs, "
            "and try again"
        )
        raise UnavailableError(message)

    def finish(self, write_context: WriteContext, part: SnapshotLogProperties) -> None:
        """End the transactions of a snapshot that was created; a failure does not affect the commit."""
        if not part.transactions:
            return
        # If the log cannot be reached, or another writer has taken the lease over, the next writer finishes it.
        with after_commit(f"table {self._table}: ending the log's transactions"):
            lost = self._repair.finish(part)
            if lost and write_context.lease is not None:
                self.put_in_order(write_context.lease, self._snapshots.latest_id())

    def _publish(self, lease: Lease, base: int | None, missing: tuple[MissingChanges, ...]) -> None:
        write_context = WriteContext(
            commit_user=f"log-repair-{self._environment.new_name()}",
            tracked=True,
            base_snapshot_id=base,
            lease=lease,
        )
        transactions: list[BucketTransaction] = []
        begun = []
        try:
            self._writer_leases.check(lease)
            for each in missing:
                transaction = self._repair.log.begin(each.bucket)
                begun.append(transaction)
                for snapshot_id, rows, kinds in self._repair.changes_of(each):
                    transaction.write(each.bucket, rows, kinds, repairs=snapshot_id)
                transactions += [
                    BucketTransaction(handle=transaction.handle, written=written) for written in transaction.flush()
                ]
            _, part = self._publisher.publish(
                write_context,
                commit_identifier=BATCH_COMMIT_IDENTIFIER,
                transactions=tuple(transactions),
                covers_from={each.bucket: each.covers_from for each in missing},
            )
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            for transaction in begun:
                transaction.abort()
            raise
        self._repair.finish(part)
