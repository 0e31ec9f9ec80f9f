"""Writes outside of any transaction, visible at once: an idempotent producer whose id outlives a single write.

A broker remembers each producer id for a day, so the next write of this process reuses an id instead of requesting a
new one. An id is discarded after an error, because it is unknown which of its last batches were stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import kafka.errors
import pyarrow as pa
from kafka.protocol.producer import InitProducerIdRequest

from storage_lib.log_store.kafka.kafka_bucket_writer import KafkaBucketWriter
from storage_lib.log_store.kafka.kafka_change_writer import KafkaChangeWriter
from storage_lib.log_store.kafka.kafka_cluster import refuse

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock
    from storage_lib.log_store.codec.log_codec import LogCodec
    from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
    from storage_lib.log_store.kafka.kafka_topic import KafkaTopic
    from storage_lib.log_store.log_store import WrittenRange

_INIT_VERSION_MAX = 4
_NEW_PRODUCER = -1
_NO_TIMEOUT_MS = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentProducer:
    """Producer id with its epoch, and the sequence number of its next record in every bucket."""

    producer_id: int
    producer_epoch: int
    next_sequences: Mapping[int, int] = field(default_factory=dict)


def new_producer(cluster: KafkaCluster, topic: str, clock: Clock) -> IdempotentProducer:
    """Request a new producer id from any broker. Raises ``UnavailableError`` if none answers in time."""
    retries = cluster.retries(clock, f"open {topic!r} for writing")
    request = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=_NO_TIMEOUT_MS,
        producer_id=_NEW_PRODUCER,
        producer_epoch=_NEW_PRODUCER,
        max_version=_INIT_VERSION_MAX,
    )
    while True:
        try:
            answer = cluster.ask(None, request)
            error = kafka.errors.for_code(answer.error_code)
        except kafka.errors.KafkaError as failure:
            error = type(failure)
        if error is kafka.errors.NoError:
            return IdempotentProducer(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)
        refuse(error, topic)
        retries.wait(error.__name__)


class KafkaLogAppender:
    """``LogAppender`` for one write. Passes the producer to ``give_back`` after success."""

    def __init__(
        self,
        *,
        cluster: KafkaCluster,
        topic: KafkaTopic,
        producer: IdempotentProducer,
        codec: LogCodec,
        settings: KafkaLogSettings,
        clock: Clock,
        give_back: Callable[[IdempotentProducer], None],
    ) -> None:
        """Write under ``producer``, which no other writer may use meanwhile."""
        self._cluster = cluster
        self._producer = producer
        self._settings = settings
        self._clock = clock
        self._give_back = give_back
        self._changes = KafkaChangeWriter(
            topic=topic,
            codec=codec,
            settings=settings,
            now_millis=clock.now_millis,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            open_bucket=self._open_bucket,
            is_transactional=False,
        )

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """See ``LogAppender.write``."""
        self._changes.write(bucket, rows, kinds)

    def finish(self) -> tuple[WrittenRange, ...]:
        """See ``LogAppender.finish``."""
        written = self._changes.flush()
        self._give_back(
            IdempotentProducer(
                producer_id=self._producer.producer_id,
                producer_epoch=self._producer.producer_epoch,
                next_sequences={**self._producer.next_sequences, **self._changes.next_sequences},
            )
        )
        return written

    def give_up(self) -> None:
        """See ``LogAppender.give_up``."""
        self._changes.give_up()

    def _open_bucket(self, bucket: int) -> KafkaBucketWriter:
        return KafkaBucketWriter(
            self._cluster,
            self._settings.topic,
            bucket,
            None,
            self._clock,
            self._settings.limit_ms,
            next_sequence=self._producer.next_sequences.get(bucket, 0),
        )
