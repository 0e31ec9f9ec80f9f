"""Commits log transactions, and finds those whose records are not visible afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from storage_lib.errors import LogOffsetsExpiredError
from storage_lib.log_store.log_store import EndOutcome, LogStore
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction


def not_in_log(log: LogStore, transactions: Sequence[BucketTransaction]) -> tuple[BucketTransaction, ...]:
    """Commit the transactions; return those whose records readers of the log will not see.

    These were aborted earlier; or the log reports them as committed, but a bucket has no commit marker: a broker that
    was killed and restarted may lose it (docs/guarantees.md), and a successor would abort the open transaction.
    """
    outcomes = log.end_all(tuple(each.handle for each in transactions), commit=True)
    doubtful = [each for each, outcome in zip(transactions, outcomes, strict=True) if outcome is EndOutcome.FENCED]
    if len(doubtful) < len(transactions):
        ends = log.latest_offsets()
        doubtful += [
            each
            for each in transactions
            if each not in doubtful and ends.of(each.written.bucket) < each.written.next_offset
        ]
    return tuple(each for each in doubtful if not _is_committed(log, each))


def _is_committed(log: LogStore, transaction: BucketTransaction) -> bool:
    try:
        return log.is_committed(transaction.written)
    except LogOffsetsExpiredError:
        # Retention has deleted the records. Readers that would need them get an error for expired offsets anyway.
        return True
