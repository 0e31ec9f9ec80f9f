"""Sends one bucket's record batches, with or without a transaction, numbered so that a resent batch is stored once.

At most five batches are in flight, since a broker remembers five per producer. The first is sent alone: a broker
accepts any batch as the first of an unknown producer, and if the actual first one was refused (for example by a broker
that is just becoming the leader), it could not be stored after its successor. After a transient failure, all batches in
flight are awaited, and those not stored are sent again, one by one, with their former sequence numbers.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.protocol.producer import ProduceRequest

from storage_lib.errors import InvalidInputError, UnavailableError
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster, Retries, is_worth_retrying, refuse
from storage_lib.log_store.kafka.kafka_transactions import lost
from storage_lib.log_store.log_store import TransactionHandle, WrittenRange

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock

_IN_FLIGHT_MAX = 5
_ACKS_ALL = -1
_PRODUCE_VERSION_MIN, _PRODUCE_VERSION_MAX = 3, 11
_SEQUENCE_MASK = 0x7FFF_FFFF
_ENDED = (
    kafka.errors.ProducerFencedError,
    kafka.errors.InvalidProducerEpochError,
    kafka.errors.InvalidProducerIdMappingError,
    kafka.errors.InvalidTxnStateError,
    kafka.errors.UnknownProducerIdError,
    kafka.errors.TransactionAbortableError,
)
_TOO_LARGE = (kafka.errors.MessageSizeTooLargeError, kafka.errors.RecordListTooLargeError)


@dataclass(frozen=True, slots=True)
class _Sent:
    batch: bytes
    record_count: int
    answer: Future[Any]


class KafkaBucketWriter:
    """Sends the batches of one bucket in order. Not thread-safe."""

    def __init__(
        self,
        cluster: KafkaCluster,
        topic: str,
        bucket: int,
        handle: TransactionHandle | None,
        clock: Clock,
        timeout_ms: int,
        *,
        next_sequence: int = 0,
    ) -> None:
        """Write within the transaction ``handle``, which the bucket has joined; None writes outside of any."""
        self._cluster = cluster
        self._topic = topic
        self._bucket = bucket
        self._handle = handle
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._in_flight: deque[_Sent] = deque()
        self._first_offset: int | None = None
        self._next_offset = 0
        self.next_sequence = next_sequence

    def send(self, batch: bytes, record_count: int) -> None:
        """Send a batch whose first sequence number is ``next_sequence``, once there is room in flight.

        Only one batch may be in flight until the first is stored, then five. Batches known to have failed are resent
        first: a broker that forgot this producer would accept any batch as its first.
        """
        while len(self._in_flight) >= self._in_flight_max or any(map(_is_lost, self._in_flight)):
            self._settle()
        self._in_flight.append(_Sent(batch, record_count, self._submit(batch, self._retries())))
        self.next_sequence = (self.next_sequence + record_count) & _SEQUENCE_MASK

    def flush(self) -> WrittenRange | None:
        """Wait until all replicas have stored all batches; return their range, or None if nothing was sent."""
        while self._in_flight:
            self._settle()
        if self._first_offset is None:
            return None
        return WrittenRange(bucket=self._bucket, first_offset=self._first_offset, next_offset=self._next_offset)

    def give_up(self) -> None:
        """Wait for the batches in flight and ignore their outcomes; none may arrive after the transaction's end."""
        for sent in self._in_flight:
            self._answer_of(sent)
        self._in_flight.clear()

    @property
    def _in_flight_max(self) -> int:
        return 1 if self._first_offset is None else _IN_FLIGHT_MAX

    def _settle(self) -> None:
        """Wait until the oldest batch in flight is stored, or resend all in flight after a transient failure."""
        oldest = self._in_flight[0]
        error, base_offset = self._answer_of(oldest)
        if error is not kafka.errors.NoError:
            self._check(error, may_be_out_of_order=False)
            self._send_again()
            return
        self._in_flight.popleft()
        self._note(base_offset, oldest.record_count)

    def _send_again(self) -> None:
        retries = self._retries()
        for sent in self._in_flight:
            self._answer_of(sent)
        while self._in_flight:
            sent = self._in_flight[0]
            error, base_offset = self._answer_of(sent)
            while error is not kafka.errors.NoError:
                self._check(error, may_be_out_of_order=True)
                self._cluster.forget_leaders(self._topic)
                retries.wait(error.__name__)
                self._in_flight[0] = sent = replace(sent, answer=self._submit(sent.batch, retries))
                error, base_offset = self._answer_of(sent)
            self._in_flight.popleft()
            self._note(base_offset, sent.record_count)

    def _note(self, base_offset: int, record_count: int) -> None:
        if self._first_offset is None:
            self._first_offset = base_offset
        self._next_offset = base_offset + record_count

    def _answer_of(self, sent: _Sent) -> tuple[type[Exception], int]:
        try:
            partition = self._cluster.answer(sent.answer).responses[0].partition_responses[0]
        except kafka.errors.KafkaError as failure:
            return type(failure), -1
        return kafka.errors.for_code(partition.error_code), partition.base_offset

    def _submit(self, batch: bytes, retries: Retries) -> Future[Any]:
        partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=self._bucket, records=batch)
        topic = ProduceRequest.TopicProduceData(name=self._topic, partition_data=[partition])
        request = ProduceRequest(
            transactional_id=None if self._handle is None else self._handle.transactional_id,
            acks=_ACKS_ALL,
            timeout_ms=self._timeout_ms,
            topic_data=[topic],
            min_version=_PRODUCE_VERSION_MIN,
            max_version=_PRODUCE_VERSION_MAX,
        )
        return self._cluster.submit(self._cluster.leaders(self._topic, retries).get(self._bucket), request)

    def _check(self, error: type[Exception], *, may_be_out_of_order: bool) -> None:
        """Raise for a permanent error."""
        refuse(error, self._topic)
        if self._handle is not None and issubclass(error, _ENDED):
            raise lost(self._handle.transactional_id, error)
        if issubclass(error, _TOO_LARGE):
            message = (
                f"log {self._topic!r}, bucket {self._bucket}: the record batch is too large for the broker; raise the "
                "topic's max.message.bytes or write smaller rows"
            )
            raise InvalidInputError(message)
        if error is kafka.errors.InvalidTimestampError:
            message = (
                f"log {self._topic!r}, bucket {self._bucket}: the broker refuses the time of this machine; "
                "set its clock, or the topic's message.timestamp.after.max.ms to 9223372036854775807"
            )
            raise InvalidInputError(message)
        is_out_of_order = error is kafka.errors.OutOfOrderSequenceNumberError and may_be_out_of_order
        if not is_worth_retrying(error) and not is_out_of_order:
            message = f"log {self._topic!r}, bucket {self._bucket}: the broker answers {error.__name__}; " + (
                "write again" if self._handle is None else "nothing became visible, begin the transaction again"
            )
            raise UnavailableError(message)

    def _retries(self) -> Retries:
        return self._cluster.retries(self._clock, f"write to bucket {self._bucket} of {self._topic!r}")


def _is_lost(sent: _Sent) -> bool:
    return sent.answer.done() and sent.answer.exception() is not None
