"""Commits log transactions, and finds out which of them readers will not see all the same."""

from __future__ import annotations

from collections.abc import Sequence

from storage_lib.errors import LogOffsetsExpiredError
from storage_lib.log_store.log_store import EndOutcome, LogStore
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction


def not_in_log(log: LogStore, transactions: Sequence[BucketTransaction]) -> tuple[BucketTransaction, ...]:
    """End the transactions by a commit; those of them whose records readers of the log will not see all the same.

    They were ended otherwise before; or the log says that they are committed, and a bucket was never told: a broker
    that was killed and is back may forget that (docs/guarantees.md), and a successor would abort what is left open.
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
        # Retention has taken the records. Nobody can miss them any more who is not told so anyway.
        return True
