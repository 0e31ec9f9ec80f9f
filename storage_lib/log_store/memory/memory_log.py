"""Log in memory with Kafka's semantics: transactions, fencing, last stable offset, offsets used by markers, expiry.

``MemoryLogStore`` objects with the same name share one log. Callers hold ``lock``.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import pyarrow as pa

from storage_lib.errors import LeaseLostError
from storage_lib.log_store.codec.log_columns import LogColumns
from storage_lib.log_store.log_store import EndOutcome, TransactionHandle

_MARKER_OFFSETS = 1


class TransactionState(Enum):
    """State of a transaction, with Kafka's names."""

    EMPTY = "begun, nothing written"
    ONGOING = "written, not ended"
    COMMITTED = "ended, visible"
    ABORTED = "ended, never visible"


@dataclass(slots=True)
class MemoryTransaction:
    """One transaction: its handle, state, start time, and first offset in each bucket that it wrote to."""

    handle: TransactionHandle
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    began_millis: int = 0
    first_offsets: dict[int, int] = field(default_factory=dict)

    def start(self, now: int) -> None:
        """Enter state ONGOING, at the first record; ``now`` is in epoch ms."""
        self.state, self.began_millis = TransactionState.ONGOING, now

    def close(self, state: TransactionState) -> None:
        """Enter the final ``state``: COMMITTED or ABORTED."""
        self.state = state


_NO_TRANSACTION = MemoryTransaction(
    TransactionHandle(transactional_id="", producer_id=-1, producer_epoch=-1), 0, TransactionState.COMMITTED
)
"""Owner of records that are visible as soon as they are stored."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records of one transaction that were written in one call."""

    columns: LogColumns
    transaction: MemoryTransaction


@dataclass(slots=True)
class MemoryBucket:
    """Records of one bucket; ``start_offset`` is the oldest offset held, ``end_offset`` the next to be written."""

    stretches: list[Stretch] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0

    def append(self, stretch: Stretch, end_offset: int) -> None:
        """Store records that end before ``end_offset``."""
        self.stretches.append(stretch)
        self.end_offset = end_offset

    def mark_end(self) -> None:
        """Skip the offset that a transaction's end marker takes."""
        self.end_offset += _MARKER_OFFSETS

    def expire(self, before_offset: int) -> None:
        """Delete the records below an offset."""
        self.start_offset = min(max(self.start_offset, before_offset), self.end_offset)
        retained = [replace(s, columns=s.columns.between(self.start_offset, self.end_offset)) for s in self.stretches]
        self.stretches = [s for s in retained if len(s.columns)]


class MemoryLog:
    """All buckets of one log and the newest transaction of every slot."""

    def __init__(self, table_uuid: str, bucket_count: int, retention_ms: int | None, log_id: str) -> None:
        """Create an empty log that belongs to the table ``table_uuid``."""
        self.table_uuid = table_uuid
        self.log_id = log_id
        self.retention_ms = retention_ms
        self.buckets = [MemoryBucket() for _ in range(bucket_count)]
        self.lock = threading.RLock()
        self._newest: dict[str, MemoryTransaction] = {}

    def begin(self, transactional_id: str, timeout_ms: int) -> MemoryTransaction:
        """Abort the slot's open transaction, raise its epoch and open the next transaction."""
        previous = self._newest.get(transactional_id)
        if previous is None:
            handle = TransactionHandle(
                transactional_id=transactional_id,
                producer_id=len(self._newest),
                producer_epoch=0,
            )
        else:
            self._close(previous, TransactionState.ABORTED)
            handle = replace(previous.handle, producer_epoch=previous.handle.producer_epoch + 1)
        self._newest[transactional_id] = MemoryTransaction(handle, timeout_ms)
        return self._newest[transactional_id]

    def append(
        self,
        transaction: MemoryTransaction,
        bucket: int,
        keys: pa.Array,
        values: pa.Array,
        repairs: pa.Array,
        now: int,
    ) -> tuple[int, int]:
        """Store records under ``transaction``; return the first offset and the one after the last.

        Raises ``LeaseLostError`` if the transaction has ended or been fenced.
        """
        is_newest = self._newest[transaction.handle.transactional_id] is transaction
        if not is_newest or transaction.state not in (
            TransactionState.EMPTY,
            TransactionState.ONGOING,
        ):
            message = (
                f"transaction {transaction.handle.transactional_id} was ended: timed out, or fenced by a successor; "
                "begin again with a new lease"
            )
            raise LeaseLostError(message)
        if transaction.state is TransactionState.EMPTY:
            transaction.start(now)
        first, stop = self._store(transaction, bucket, keys, values, repairs, now)
        transaction.first_offsets.setdefault(bucket, first)
        return first, stop

    def append_visible(self, bucket: int, keys: pa.Array, values: pa.Array, now: int) -> tuple[int, int]:
        """Store records outside of any transaction; return the first offset and the one after the last."""
        return self._store(_NO_TRANSACTION, bucket, keys, values, pa.nulls(len(values), pa.int64()), now)

    def _store(
        self,
        transaction: MemoryTransaction,
        bucket: int,
        keys: pa.Array,
        values: pa.Array,
        repairs: pa.Array,
        now: int,
    ) -> tuple[int, int]:
        target = self.buckets[bucket]
        first, stop = target.end_offset, target.end_offset + len(values)
        columns = LogColumns(
            keys=keys,
            values=values,
            offsets=np.arange(first, stop, dtype=np.int64),
            timestamps=np.full(len(values), now, np.int64),
            repairs=repairs,
        )
        target.append(Stretch(columns, transaction), stop)
        return first, stop

    def end(self, handle: TransactionHandle, *, commit: bool) -> EndOutcome:
        """End the transaction unless it has already ended."""
        transaction = self._newest.get(handle.transactional_id)
        if transaction is None or transaction.handle != handle:
            return EndOutcome.FENCED
        wanted = TransactionState.COMMITTED if commit else TransactionState.ABORTED
        if transaction.state in (TransactionState.EMPTY, TransactionState.ONGOING):
            self._close(transaction, wanted)
        is_as_wanted = transaction.state is wanted or not transaction.first_offsets
        return EndOutcome.ENDED if is_as_wanted else EndOutcome.FENCED

    def stable_offset(self, bucket: int) -> int:
        """Return the first offset of the oldest open transaction, or the end of the log if none is open."""
        open_at = [
            transaction.first_offsets[bucket]
            for transaction in self._newest.values()
            if transaction.state is TransactionState.ONGOING and bucket in transaction.first_offsets
        ]
        return min([*open_at, self.buckets[bucket].end_offset])

    def let_time_pass(self, now: int) -> None:
        """Do a broker's background work: abort timed-out transactions, delete expired records."""
        for transaction in self._newest.values():
            is_late = now - transaction.began_millis > transaction.timeout_ms
            if transaction.state is TransactionState.ONGOING and is_late:
                self._close(transaction, TransactionState.ABORTED)
        if self.retention_ms is not None:
            for bucket, held in enumerate(self.buckets):
                old = [s for s in held.stretches if s.columns.timestamps[-1] < now - self.retention_ms]
                if old:
                    self.expire(
                        bucket,
                        min(
                            int(old[-1].columns.offsets[-1]) + 1,
                            self.stable_offset(bucket),
                        ),
                    )

    def expire(self, bucket: int, before_offset: int) -> None:
        """Delete the records of ``bucket`` below an offset."""
        self.buckets[bucket].expire(before_offset)

    def _close(self, transaction: MemoryTransaction, state: TransactionState) -> None:
        if transaction.state not in (TransactionState.EMPTY, TransactionState.ONGOING):
            return
        transaction.close(state)
        for bucket in transaction.first_offsets:
            self.buckets[bucket].mark_end()
