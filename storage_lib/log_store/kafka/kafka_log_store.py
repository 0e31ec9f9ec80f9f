"""The log on Kafka: one topic per table, one Kafka partition per bucket, one transaction per slot and commit.

Codecs convert whole Arrow batches to record batches and back (``debezium_json``, ``kafka_batch_encoding``). Kafka's
protocol is in ``kafka_topic``, ``kafka_transactions``, ``kafka_bucket_writer`` and ``kafka_bucket_reader``, which
share one set of connections per process (``kafka_cluster``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from storage_lib.built_once import built_once
from storage_lib.errors import InvalidInputError, StorageError, UnavailableError
from storage_lib.log_store.codec.log_codec import TopicSchemas
from storage_lib.log_store.codec.log_columns import LogColumns, no_columns, read_columns
from storage_lib.log_store.codec.record_log import BucketRecords
from storage_lib.log_store.kafka.kafka_batch_decoding import columns_of, grouped, is_commit_marker
from storage_lib.log_store.kafka.kafka_bucket_reader import EARLIEST, LATEST, KafkaBucketReader
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster
from storage_lib.log_store.kafka.kafka_log_appender import IdempotentProducer, KafkaLogAppender, new_producer
from storage_lib.log_store.kafka.kafka_log_transaction import KafkaLogTransaction
from storage_lib.log_store.kafka.kafka_topic import KafkaTopic, mark_of
from storage_lib.log_store.kafka.kafka_transactions import KafkaTransactions
from storage_lib.log_store.kafka.log_codecs import codec_of
from storage_lib.log_store.log_offsets import LogOffsets, recreated_error
from storage_lib.log_store.log_store import EndOutcome, LogBatch, TransactionHandle, WrittenRange

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock
    from storage_lib.log_store.codec.log_codec import LogCodec
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
    from storage_lib.schema.table_schema import TableSchema

_BATCH_ROWS_MAX = 65_536
_BATCH_BYTES_MAX = 16 << 20


class KafkaLogStore:
    """``LogStore`` on Kafka. Connects at the first operation. Thread-safe except for transactions; picklable."""

    def __init__(self, schema: TableSchema, settings: KafkaLogSettings, clock: Clock) -> None:
        """Use the table's topic, which ``create`` creates. Of an external topic, only records may be read."""
        self._schema = schema
        self.settings = settings
        self._clock = clock
        self._codec: LogCodec = codec_of(schema, settings)
        self._cluster = KafkaCluster.shared(settings.client_config, settings.limit_ms)
        self._idle_producers: list[tuple[int, IdempotentProducer]] = []
        """Producers with the id of their process: a forked child would repeat its parent's sequence numbers."""

    def __reduce__(self) -> tuple[type[KafkaLogStore], tuple[TableSchema, KafkaLogSettings, Clock]]:
        """Pickle the arguments only; the unpickled store opens its own connections."""
        return KafkaLogStore, (self._schema, self.settings, self._clock)

    @built_once
    def _topic(self) -> KafkaTopic:
        return KafkaTopic(self._cluster, self.settings.topic, mark_of(self.settings.table_uuid), self._clock)

    @built_once
    def _transactions(self) -> KafkaTransactions:
        return KafkaTransactions(self._cluster, self.settings.topic, self._clock)

    @built_once
    def _reader(self) -> KafkaBucketReader:
        return KafkaBucketReader(self._cluster, self.settings.topic, self._clock)

    def create(self) -> None:
        """See ``LogStore.create``."""
        with self._registered():
            self._topic.create(
                partition_count=len(self._schema.bucket_numbers),
                retention_ms=self.settings.retention_ms,
                replication_factor=self.settings.replication_factor,
            )

    def drop(self) -> None:
        """See ``LogStore.drop``."""
        self._topic.drop()
        schemas = self._schemas
        if schemas is not None:
            schemas.unregister()

    def evolve(self, schema: TableSchema) -> None:
        """See ``LogStore.evolve``."""
        codec: LogCodec = codec_of(schema, self.settings)
        if isinstance(codec, TopicSchemas):
            codec.register()

    @property
    def _schemas(self) -> TopicSchemas | None:
        """The codec if it keeps schemas in a registry, else None."""
        return self._codec if isinstance(self._codec, TopicSchemas) else None

    @contextmanager
    def _registered(self) -> Iterator[None]:
        """Create the topic's schemas in the registry, if it needs any; delete new ones after a failure."""
        schemas = self._schemas
        if schemas is None:
            yield
            return
        is_new = schemas.refuse_taken()
        schemas.register()
        try:
            yield
        except BaseException:
            if is_new:
                # The original failure matters more than schemas left in the registry.
                with suppress(StorageError):
                    schemas.unregister()
            raise

    def description(self) -> Mapping[str, str]:
        """See ``LogStore.description``."""
        retention_ms = self.retention_ms()
        return {
            "log.system": "kafka",
            "log.format": str(self.settings.format),
            "log.kafka.bootstrap.servers": self.settings.servers,
            "log.kafka.topic": self.settings.topic,
            "log.retention": "forever" if retention_ms is None else f"{retention_ms} ms",
        }

    def retention_ms(self) -> int | None:
        """See ``LogStore.retention_ms``."""
        configured = int(self._topic.configs().get("retention.ms") or -1)
        return None if configured < 0 else configured

    def log_id(self) -> str | None:
        """See ``LogStore.log_id``."""
        return self._topic.id()

    @built_once
    def _may_miss_records(self) -> bool:
        try:
            return "compact" in self._topic.configs().get("cleanup.policy", "")
        except InvalidInputError:
            return True  # this user may not describe the topic

    def is_compacted(self) -> bool:
        """See ``RecordLog.is_compacted``; asks once."""
        return self._may_miss_records

    def begin(self, slot: int) -> KafkaLogTransaction:
        """See ``LogStore.begin``."""
        self._topic.refuse_others()
        return KafkaLogTransaction(
            cluster=self._cluster,
            topic=self._topic,
            transactions=self._transactions,
            handle=self._transactions.begin(f"{self.settings.table_uuid}-{slot}", self.settings.transaction_timeout_ms),
            codec=self._codec,
            settings=self.settings,
            clock=self._clock,
        )

    def open_appender(self) -> KafkaLogAppender:
        """See ``LogStore.open_appender``."""
        self._topic.refuse_others()
        process = os.getpid()
        try:
            owner, producer = self._idle_producers.pop()
        except IndexError:
            owner = None
        if owner != process:
            producer = new_producer(self._cluster, self.settings.topic, self._clock)
        return KafkaLogAppender(
            cluster=self._cluster,
            topic=self._topic,
            producer=producer,
            codec=self._codec,
            settings=self.settings,
            clock=self._clock,
            give_back=lambda idle: self._idle_producers.append((process, idle)),
        )

    def end(self, handle: TransactionHandle, *, commit: bool) -> EndOutcome:
        """See ``LogStore.end``."""
        return self._transactions.end_all((handle,), commit=commit)[0]

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        """See ``LogStore.end_all``."""
        return self._transactions.end_all(handles, commit=commit)

    def is_committed(self, written: WrittenRange) -> bool:
        """See ``LogStore.is_committed``.

        Readers see a transaction's records once its commit marker follows them, so this searches for the next marker
        of the producer that wrote the last record. Unlike the last stable offset, it ignores other producers.
        """
        retries = self._reader.retries()
        offset, producer_id = written.next_offset - 1, None
        end = self._reader.offsets({written.bucket: LATEST}, committed=False)[written.bucket]
        while offset < end:
            pending = self._reader.submit(written.bucket, offset, retries, committed=False)
            fetched = self._reader.fetched(pending, written.bucket, offset, retries, committed=False)
            if not fetched.batches:
                retries.wait("an empty answer")
            for batch in fetched.batches:
                if producer_id is None:
                    if not batch.is_transactional or batch.is_control:
                        return not batch.is_control
                    producer_id = batch.producer_id
                elif batch.is_control and batch.producer_id == producer_id:
                    return is_commit_marker(batch)
                offset = batch.next_offset
        return False

    def earliest_offsets(self) -> LogOffsets:
        """See ``LogStore.earliest_offsets``."""
        return LogOffsets(self._reader.offsets(self._every_bucket(EARLIEST)), self.log_id())

    def latest_offsets(self) -> LogOffsets:
        """See ``LogStore.latest_offsets``."""
        return LogOffsets(self._reader.offsets(self._every_bucket(LATEST)), self.log_id())

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        """See ``LogStore.offsets_at``."""
        found = self._reader.offsets(self._every_bucket(max(0, timestamp_millis)))
        latest = self.latest_offsets()
        starts = {bucket: latest.of(bucket) if at < 0 else at for bucket, at in found.items()}
        return LogOffsets(starts, latest.log_id)

    def read(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[LogBatch]:
        """See ``LogStore.read``."""
        return self._decoded(self.records(start, end, buckets=buckets))

    def records(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[BucketRecords]:
        """See ``RecordLog.records``."""
        asked = tuple(self._schema.bucket_numbers) if buckets is None else buckets
        if start.log_id is not None and not start.is_of(self.log_id()):
            raise recreated_error(self.settings.topic)
        earliest = self._reader.offsets(dict.fromkeys(asked, EARLIEST))
        held_until = self._reader.offsets(dict.fromkeys(asked, LATEST), committed=False)
        latest = self._reader.offsets(dict.fromkeys(asked, LATEST))
        stops: dict[int, int] = {}
        for bucket in asked:
            position = start.of(bucket)
            if not earliest[bucket] <= position <= held_until[bucket]:
                raise self._reader.expired(bucket, position)
            stops[bucket] = max(position, latest[bucket] if end is None else end.of(bucket))
            if stops[bucket] > max(position, latest[bucket]):
                message = (
                    f"log {self.settings.topic!r}, bucket {bucket}: asked to read up to offset {stops[bucket]}, but it "
                    f"is committed up to {latest[bucket]} only; wait until the open transaction is ended"
                )
                raise UnavailableError(message)
        return self._records(start, stops)

    def close(self) -> None:
        """Do nothing: the process owns the connections."""

    def _every_bucket(self, time: int) -> dict[int, int]:
        return dict.fromkeys(self._schema.bucket_numbers, time)

    def _decoded(self, records: Iterator[BucketRecords]) -> Iterator[LogBatch]:
        for each in records:
            yield read_columns(
                self._codec,
                each.columns,
                log=self.settings.topic,
                bucket=each.bucket,
                next_offset=each.next_offset,
                on_corrupt=self.settings.on_corrupt,
            )

    def _records(self, start: LogOffsets, stops: Mapping[int, int]) -> Iterator[BucketRecords]:
        for bucket, stop in stops.items():
            reported = start.of(bucket)
            for columns, reached in self._visible_columns(bucket, reported, stop):
                reported = reached
                yield BucketRecords(bucket=bucket, columns=columns, next_offset=reached)
            if reported < stop or reported == start.of(bucket):
                yield BucketRecords(bucket=bucket, columns=no_columns(), next_offset=stop)

    def _visible_columns(self, bucket: int, position: int, stop: int) -> Iterator[tuple[LogColumns, int]]:
        """Yield committed records and the position after them; the next fetch runs while one is decoded."""
        retries = self._reader.retries()
        pending = self._reader.submit(bucket, position, retries) if position < stop else None
        while pending is not None:
            fetched = self._reader.fetched(pending, bucket, position, retries)
            reached = fetched.batches[-1].next_offset if fetched.batches else position
            if reached <= position:
                retries.wait("an empty answer")
            else:
                retries = self._reader.retries()
            pending = self._reader.submit(bucket, reached, retries) if reached < stop else None
            found: tuple[LogColumns, int] | None = None
            for batches in grouped(fetched.visible(), rows=_BATCH_ROWS_MAX, size_bytes=_BATCH_BYTES_MAX):
                if found is not None:
                    yield found
                columns = columns_of(batches).between(position, stop)
                found = (columns, min(batches[-1][0].next_offset, stop)) if len(columns) else None
            if found is not None:
                # Behind the last records there may be markers of transactions.
                yield found[0], min(reached, stop)
            position = max(position, reached)
