"""Reads Kafka partitions: offsets by time, raw batches by offset, and which batches are visible once committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.protocol.consumer import FetchRequest, IsolationLevel, ListOffsetsRequest

from storage_lib.errors import InvalidInputError, LogOffsetsExpiredError
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster, Retries, is_worth_retrying, refuse
from storage_lib.log_store.kafka.kafka_record_batch import RawBatch, split_batches

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock

EARLIEST, LATEST = -2, -1
"""Special timestamps for ``offsets``: the oldest record held, and the end of the log."""

_NO_REPLICA = -1
_NO_SESSION = (0, -1)
_FETCH_BYTES_MAX = 8 << 20
_FETCH_WAIT_MS = 200
_FETCH_VERSION_MIN, _FETCH_VERSION_MAX = 4, 12
_LIST_VERSION_MIN = 2
_NOT_FOUND_OFFSET = -1


@dataclass(frozen=True, slots=True)
class Fetched:
    """One response: whole batches, their aborted transactions and the end of the log."""

    batches: tuple[RawBatch, ...]
    aborted: tuple[tuple[int, int], ...]
    high_watermark: int

    def visible(self) -> list[RawBatch]:
        """Return the data batches except those of aborted transactions.

        ``aborted`` holds (first offset, producer id). A producer's batches are invisible from that offset until its
        next marker.
        """
        waiting = sorted(self.aborted, reverse=True)
        aborting: set[int] = set()
        seen = []
        for batch in self.batches:
            while waiting and waiting[-1][0] < batch.next_offset:
                aborting.add(waiting.pop()[1])
            if batch.is_control:
                aborting.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborting):
                seen.append(batch)
        return seen


class KafkaBucketReader:
    """Reads the buckets of one topic."""

    def __init__(self, cluster: KafkaCluster, topic: str, clock: Clock) -> None:
        """Read over the connections of ``cluster``."""
        self._cluster = cluster
        self._topic = topic
        self._clock = clock

    def retries(self) -> Retries:
        """Start the retries of one read."""
        return self._cluster.retries(self._clock, f"read {self._topic!r}")

    def offsets(self, times: Mapping[int, int], *, committed: bool = True) -> dict[int, int]:
        """Return the first offset at or after a time (epoch ms, ``EARLIEST`` or ``LATEST``) for every bucket.

        The offset is -1 if there is no such record. With ``committed``, the end is the last stable offset.
        """
        retries = self.retries()
        found: dict[int, int] = {}
        while missing := [bucket for bucket in times if bucket not in found]:
            leaders = self._leaders(missing, retries)
            by_leader: defaultdict[int, list[int]] = defaultdict(list)
            for bucket in missing:
                by_leader[leaders[bucket]].append(bucket)
            requests = [(node, self._list_request(buckets, times, committed)) for node, buckets in by_leader.items()]
            errors: list[type[Exception]] = []
            for answer in self._cluster.ask_all(requests):
                if isinstance(answer, Exception):
                    errors.append(type(answer))
                    continue
                for partition in answer.topics[0].partitions:
                    error = kafka.errors.for_code(partition.error_code)
                    if error is kafka.errors.NoError:
                        found[partition.partition_index] = partition.offset
                    else:
                        errors.append(error)
            if errors:
                self._wait(errors[0], retries)
        return found

    def submit(self, bucket: int, offset: int, retries: Retries, *, committed: bool = True) -> Future[Any]:
        """Request the batches from ``offset`` without waiting; pass the result to ``fetched``."""
        leaders = self._leaders([bucket], retries)
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=bucket,
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=_FETCH_BYTES_MAX,
        )
        request = FetchRequest(
            replica_id=_NO_REPLICA,
            max_wait_ms=_FETCH_WAIT_MS if committed else 0,
            min_bytes=1,
            max_bytes=_FETCH_BYTES_MAX,
            isolation_level=_isolation(committed),
            session_id=_NO_SESSION[0],
            session_epoch=_NO_SESSION[1],
            topics=[FetchRequest.FetchTopic(topic=self._topic, partitions=[partition])],
            min_version=_FETCH_VERSION_MIN,
            max_version=_FETCH_VERSION_MAX,
        )
        return self._cluster.submit(leaders[bucket], request)

    def fetched(
        self, pending: Future[Any], bucket: int, offset: int, retries: Retries, *, committed: bool = True
    ) -> Fetched:
        """Wait for the response to ``submit``; retry transient errors.

        Raises ``LogOffsetsExpiredError`` if the log does not hold ``offset``.
        """
        while True:
            try:
                answer = self._cluster.answer(pending)
                partition = answer.responses[0].partitions[0]
                error = kafka.errors.for_code(partition.error_code)
            except kafka.errors.KafkaError as failure:
                error = type(failure)
            if error is kafka.errors.NoError:
                data = memoryview(partition.records or b"")
                aborted = tuple((each.first_offset, each.producer_id) for each in partition.aborted_transactions or ())
                batches = tuple(split_batches(data, log=self._topic, bucket=bucket))
                return Fetched(batches, aborted, partition.high_watermark)
            if error is kafka.errors.OffsetOutOfRangeError:
                raise self.expired(bucket, offset)
            self._wait(error, retries)
            pending = self.submit(bucket, offset, retries, committed=committed)

    def expired(self, bucket: int, offset: int) -> LogOffsetsExpiredError:
        """Return the error for a read at an offset that the log does not hold."""
        return LogOffsetsExpiredError(
            f"log {self._topic!r}, bucket {bucket}: offset {offset} is no longer held, or not yet written (was the "
            "topic recreated?); read the files from a snapshot again (log.scan=full); raise log.retention if it recurs"
        )

    def _list_request(self, buckets: Sequence[int], times: Mapping[int, int], committed: bool) -> object:  # noqa: FBT001
        partitions = [
            ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                partition_index=bucket, current_leader_epoch=-1, timestamp=times[bucket]
            )
            for bucket in buckets
        ]
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self._topic, partitions=partitions)
        return ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            isolation_level=_isolation(committed),
            topics=[topic],
            min_version=_LIST_VERSION_MIN,
        )

    def _leaders(self, buckets: Sequence[int], retries: Retries) -> Mapping[int, int]:
        """Return the leader of every partition. Raises ``InvalidInputError`` if the topic lacks one of ``buckets``."""
        leaders = self._cluster.leaders(self._topic, retries)
        if not set(buckets) <= leaders.keys():
            # Another process may have created the topic again, with more partitions, since they were looked up.
            self._cluster.forget_leaders(self._topic)
            leaders = self._cluster.leaders(self._topic, retries)
        beyond = [bucket for bucket in buckets if bucket not in leaders]
        if beyond:
            message = f"log {self._topic!r} has {len(leaders)} partitions, but bucket {beyond[0]} was asked for"
            raise InvalidInputError(message)
        return leaders

    def _wait(self, error: type[Exception], retries: Retries) -> None:
        refuse(error, self._topic)
        if not is_worth_retrying(error):
            message = f"Kafka answers {error.__name__} when topic {self._topic!r} is read; see the broker's log"
            raise InvalidInputError(message)
        self._cluster.forget_leaders(self._topic)
        retries.wait(error.__name__)


def _isolation(committed: bool) -> int:  # noqa: FBT001
    return int(IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED)
