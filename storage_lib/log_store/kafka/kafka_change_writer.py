"""Encodes changes as record batches within the topic's size limit. Shared by transactions and appenders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.kafka.kafka_batch_encoding import (
    RECORD_BYTES_MAX,
    BatchOwner,
    encode_batch,
    encode_headers,
)
from storage_lib.log_store.kafka.kafka_bucket_writer import KafkaBucketWriter
from storage_lib.log_store.kafka.kafka_record_batch import BATCH_HEADER_BYTES

if TYPE_CHECKING:
    from storage_lib.log_store.codec.log_codec import LogCodec
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
    from storage_lib.log_store.kafka.kafka_topic import KafkaTopic
    from storage_lib.log_store.log_store import WrittenRange

_COMPRESSION_SLACK = 0.99
_KEY_EXCERPT_BYTES = 100


class KafkaChangeWriter:
    """Writes under one producer id and epoch; ``open_bucket`` creates a bucket's writer at its first change."""

    def __init__(
        self,
        *,
        topic: KafkaTopic,
        codec: LogCodec,
        settings: KafkaLogSettings,
        now_millis: Callable[[], int],
        producer_id: int,
        producer_epoch: int,
        open_bucket: Callable[[int], KafkaBucketWriter],
        is_transactional: bool,
    ) -> None:
        self._topic = topic
        self._codec = codec
        self._settings = settings
        self._now_millis = now_millis
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._open_bucket = open_bucket
        self._is_transactional = is_transactional
        self._writers: dict[int, KafkaBucketWriter] = {}

    @property
    def next_sequences(self) -> Mapping[int, int]:
        """Sequence number of the next record, for every bucket written to."""
        return {bucket: writer.next_sequence for bucket, writer in self._writers.items()}

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, *, repairs: int | None = None) -> None:
        """Send the changes, in order."""
        headers = encode_headers(repairs)
        for changes in self._codec.encode(rows, kinds):
            for start, stop in self._cuts(changes.keys, changes.values, len(headers)):
                self._send(bucket, changes.keys[start:stop], changes.values[start:stop], headers)

    def flush(self) -> tuple[WrittenRange, ...]:
        """Wait until everything is stored; return the ranges by bucket."""
        ranges = [self._writers[bucket].flush() for bucket in sorted(self._writers)]
        return tuple(written for written in ranges if written is not None)

    def give_up(self) -> None:
        """Wait for the batches in flight and ignore their outcomes."""
        for writer in self._writers.values():
            writer.give_up()

    def _send(self, bucket: int, keys: pa.Array, values: pa.Array, headers: bytes) -> None:
        writer = self._writers.get(bucket)
        if writer is None:
            writer = self._writers[bucket] = self._open_bucket(bucket)
        batch = encode_batch(
            keys,
            values,
            headers=headers,
            timestamp_millis=self._now_millis(),
            owner=BatchOwner(
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                first_sequence=writer.next_sequence,
            ),
            compression=self._settings.compression,
            is_transactional=self._is_transactional,
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
        """Yield ranges of records that fit one batch uncompressed; an oversized record gets a range of its own."""
        room = int((self._topic.batch_bytes_max() - BATCH_HEADER_BYTES) * _COMPRESSION_SLACK)
        sizes = pc.fill_null(pc.binary_length(keys), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = sizes + pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(sizes + RECORD_BYTES_MAX + header_bytes)
        start, before = 0, 0
        while start < len(ends):
            stop = max(start + 1, int(np.searchsorted(ends, before + room, side="right")))
            yield start, stop
            start, before = stop, int(ends[stop - 1])
