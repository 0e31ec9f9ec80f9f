"""Log state of a snapshot, stored in its ``properties`` (docs/format.md, "Snapshot properties").

A commit that does not write to the log (compaction, untracked write) copies the previous offsets, so that a reader that
starts at any snapshot of this library can resume in the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import TransactionHandle, WrittenRange
from storage_lib.schema.encoding.json_document import UNDECODABLE

TRACKED = "dynamic-table.tracked"
LEASE = "dynamic-table.lease"
OFFSETS = "dynamic-table.log.offsets"
LOG_ID = "dynamic-table.log.id"
TRANSACTIONS = "dynamic-table.log.transactions"
COVERS_FROM = "dynamic-table.log.covers-from"
REWROTE = "dynamic-table.rewrote"
"""Set on a snapshot that rewrote the rows of the previous one under another layout: the number of that layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTransaction:
    """The log transaction of one bucket that a snapshot names, and the records in it."""

    handle: TransactionHandle
    written: WrittenRange


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLogProperties:
    """Log state of one snapshot.

    ``covers_from`` maps a bucket to the newest snapshot whose changes were in the log before this one's transaction, if
    that is not the previous one: the transaction also contains the changes missing since.
    """

    tracked: bool
    lease_number: int | None = None
    offsets: LogOffsets | None = None
    transactions: tuple[BucketTransaction, ...] = ()
    covers_from: Mapping[int, int] = field(default_factory=dict)

    def to_properties(self) -> dict[str, str]:
        """Return the snapshot properties; keys without a value are left out."""
        properties = {TRACKED: "true" if self.tracked else "false"}
        if self.lease_number is not None:
            properties[LEASE] = str(self.lease_number)
        if self.offsets is not None:
            properties[OFFSETS] = self.offsets.to_json()
            if self.offsets.log_id is not None:
                properties[LOG_ID] = self.offsets.log_id
        if self.transactions:
            properties[TRANSACTIONS] = json.dumps([_transaction_json(each) for each in self.transactions])
        if self.covers_from:
            properties[COVERS_FROM] = json.dumps({str(b): s for b, s in sorted(self.covers_from.items())})
        return properties

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> SnapshotLogProperties | None:
        """Decode a snapshot's properties; None for a snapshot of another writer, which lacks them.

        Raises ``CorruptFileError`` naming the snapshot's file if they cannot be decoded.
        """
        properties = snapshot.properties
        if TRACKED not in properties:
            return None
        try:
            return _decoded(*(properties.get(key) for key in _KEYS))
        except UNDECODABLE as error:
            message = f"the properties of {snapshot.origin} that describe the log can't be decoded: {error!r}"
            raise CorruptFileError(message) from error


_REMEMBERED = 64
"""Number of cached snapshots: a commit decodes the newest ones several times."""
_KEYS = (TRACKED, LEASE, OFFSETS, LOG_ID, TRANSACTIONS, COVERS_FROM)


@lru_cache(_REMEMBERED)
def _decoded(
    tracked: str | None,
    number: str | None,
    offsets: str | None,
    log_id: str | None,
    transactions: str | None,
    covers_from: str | None,
) -> SnapshotLogProperties:
    return SnapshotLogProperties(
        tracked=tracked == "true",
        lease_number=None if number is None else int(number),
        offsets=None if offsets is None else LogOffsets.from_json(offsets, log_id),
        transactions=tuple(_transaction(each) for each in json.loads("[]" if transactions is None else transactions)),
        covers_from={int(b): int(s) for b, s in json.loads("{}" if covers_from is None else covers_from).items()},
    )


def _transaction_json(transaction: BucketTransaction) -> dict[str, object]:
    handle, written = transaction.handle, transaction.written
    return {
        "bucket": written.bucket,
        "id": handle.transactional_id,
        "producer": handle.producer_id,
        "epoch": handle.producer_epoch,
        "first": written.first_offset,
        "next": written.next_offset,
    }


def _transaction(value: Mapping[str, object]) -> BucketTransaction:
    return BucketTransaction(
        handle=TransactionHandle(
            transactional_id=str(value["id"]),
            producer_id=int(str(value["producer"])),
            producer_epoch=int(str(value["epoch"])),
        ),
        written=WrittenRange(
            bucket=int(str(value["bucket"])),
            first_offset=int(str(value["first"])),
            next_offset=int(str(value["next"])),
        ),
    )
