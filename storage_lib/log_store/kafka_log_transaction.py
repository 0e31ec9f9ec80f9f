"""The writing side of one Kafka transaction: changes to record batches of a size the topic takes, bucket by bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError
from storage_lib.log_store.kafka_bucket_writer import KafkaBucketWriter
from storage_lib.log_store.kafka_record_batch import (
    BATCH_HEADER_BYTES,
    RECORD_BYTES_MAX,
    BatchOwner,
    encode_batch,
    encode_headers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage_lib.io.environment import Clock
    from storage_lib.log_store.debezium_json import DebeziumJson
    from storage_lib.log_store.kafka_cluster import KafkaCluster
    from storage_lib.log_store.kafka_log_settings import KafkaLogSettings
    from storage_lib.log_store.kafka_topic import KafkaTopic
    from storage_lib.log_store.kafka_transactions import KafkaTransactions
    from storage_lib.log_store.log_store import TransactionHandle, WrittenRange

_COMPRESSION_SLACK = 0.99
_KEY_EXCERPT_BYTES = 100


class KafkaLogTransaction:
    """One slot's open transaction; see ``LogTransaction``. Made by ``KafkaLogStore.begin``."""

    def __init__(
        self,
        *,
        cluster: KafkaCluster,
        topic: KafkaTopic,
        transactions: KafkaTransactions,
        handle: TransactionHandle,
        codec: DebeziumJson,
        settings: KafkaLogSettings,
        clock: Clock,
    ) -> None:
        """Write under ``handle``, which was begun."""
        self._cluster = cluster
        self._topic = topic
        self._transactions = transactions
        self._handle = handle
        self._codec = codec
        self._settings = settings
        self._clock = clock
        self._writers: dict[int, KafkaBucketWriter] = {}

    @property
    def handle(self) -> TransactionHandle:
        """See ``LogTransaction.handle``."""
        return self._handle

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, *, repairs: int | None = None) -> None:
        """See ``LogTransaction.write``."""
        headers = encode_headers(repairs)
        for changes in self._codec.encode(rows, kinds):
            for start, stop in self._cuts(changes.keys, changes.values, len(headers)):
                self._send(bucket, changes.keys[start:stop], changes.values[start:stop], headers)

    def flush(self) -> tuple[WrittenRange, ...]:
        """See ``LogTransaction.flush``."""
        ranges = [self._writers[bucket].flush() for bucket in sorted(self._writers)]
        return tuple(written for written in ranges if written is not None)

    def abort(self) -> None:
        """See ``LogTransaction.abort``. An outage is let pass: Kafka ends the transaction when its time is up."""
        try:
            for writer in self._writers.values():
                writer.give_up()
            self._transactions.end_all((self._handle,), commit=False)
        except (UnavailableError, NotFoundError):
            return

    def _send(self, bucket: int, keys: pa.Array, values: pa.Array, headers: bytes) -> None:
        writer = self._writers.get(bucket)
        if writer is None:
            self._transactions.join(self._handle, [bucket])
            writer = self._writers[bucket] = KafkaBucketWriter(
                self._cluster, self._settings.topic, bucket, self._handle, self._clock, self._settings.limit_ms
            )
        batch = encode_batch(
            keys,
            values,
            headers=headers,
            timestamp_millis=self._clock.now_millis(),
            owner=BatchOwner(
                producer_id=self._handle.producer_id,
                producer_epoch=self._handle.producer_epoch,
                first_sequence=writer.next_sequence,
            ),
            compression=self._settings.compression,
        )
        if len(batch) > self._topic.batch_bytes_max():
            key = (keys[0].as_py() or b"")[:_KEY_EXCERPT_BYTES]
            message = (
                f"log {self._settings.topic!r}, bucket {bucket}: the row with key {key!r} takes {len(batch)} bytes, "
                f"but the topic's max.message.bytes is {self._topic.batch_bytes_max()}; raise that, or shorten the row"
            )
            raise InvalidInputError(message)
        writer.send(batch, len(values))

    def _cuts(self, keys: pa.Array, values: pa.Array, header_bytes: int) -> Iterator[tuple[int, int]]:
        """Ranges of records that fit one batch even if compression gains nothing; a record too large goes alone."""
        room = int((self._topic.batch_bytes_max() - BATCH_HEADER_BYTES) * _COMPRESSION_SLACK)
        sizes = pc.fill_null(pc.binary_length(keys), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = sizes + pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(sizes + RECORD_BYTES_MAX + header_bytes)
        start, before = 0, 0
        while start < len(ends):
            stop = max(start + 1, int(np.searchsorted(ends, before + room, side="right")))
            yield start, stop
            start, before = stop, int(ends[stop - 1])
