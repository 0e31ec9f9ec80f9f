"""Writes within one Kafka transaction, which ``KafkaLogStore.begin`` opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import NotFoundError, UnavailableError
from storage_lib.log_store.kafka.kafka_bucket_writer import KafkaBucketWriter
from storage_lib.log_store.kafka.kafka_change_writer import KafkaChangeWriter
from storage_lib.log_store.kafka.kafka_forgotten_transactions import forgotten_aborted

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock
    from storage_lib.log_store.codec.log_codec import LogCodec
    from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
    from storage_lib.log_store.kafka.kafka_topic import KafkaTopic
    from storage_lib.log_store.kafka.kafka_transactions import KafkaTransactions
    from storage_lib.log_store.log_store import TransactionHandle, WrittenRange


class KafkaLogTransaction:
    """``LogTransaction`` of one slot on Kafka; created by ``KafkaLogStore.begin``."""

    def __init__(
        self,
        *,
        cluster: KafkaCluster,
        topic: KafkaTopic,
        transactions: KafkaTransactions,
        handle: TransactionHandle,
        codec: LogCodec,
        settings: KafkaLogSettings,
        clock: Clock,
    ) -> None:
        """Write under ``handle``, whose transaction is open."""
        self._cluster = cluster
        self._transactions = transactions
        self._handle = handle
        self._settings = settings
        self._clock = clock
        self._changes = KafkaChangeWriter(
            topic=topic,
            codec=codec,
            settings=settings,
            now_millis=clock.now_millis,
            producer_id=handle.producer_id,
            producer_epoch=handle.producer_epoch,
            open_bucket=self._joined_bucket,
            is_transactional=True,
        )

    @property
    def handle(self) -> TransactionHandle:
        """See ``LogTransaction.handle``."""
        return self._handle

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, *, repairs: int | None = None) -> None:
        """See ``LogTransaction.write``."""
        self._changes.write(bucket, rows, kinds, repairs=repairs)

    def flush(self) -> tuple[WrittenRange, ...]:
        """See ``LogTransaction.flush``."""
        return self._changes.flush()

    def abort(self) -> None:
        """See ``LogTransaction.abort``. Ignores outages: Kafka aborts the transaction after its timeout."""
        try:
            self._changes.give_up()
            self._transactions.end_all((self._handle,), commit=False)
        except (UnavailableError, NotFoundError):
            return

    def _joined_bucket(self, bucket: int) -> KafkaBucketWriter:
        topic, producer_id = self._settings.topic, self._handle.producer_id
        with forgotten_aborted(self._cluster, topic, bucket, producer_id, self._clock):
            self._transactions.join(self._handle, [bucket])
        return KafkaBucketWriter(
            self._cluster, self._settings.topic, bucket, self._handle, self._clock, self._settings.limit_ms
        )
