"""Kafka's transaction protocol: begin, add buckets, end, from any process that has the transaction's handle.

A client's producer object keeps id, epoch and sequence in the memory of its process; we keep them in
``TransactionHandle`` and in ``KafkaBucketWriter``, so that a committer in another process can end a writer's
transaction. Requests stay at the versions before KIP-890 (EndTxn 3, AddPartitionsToTxn 3, Produce 11): from version 5
on, EndTxn raises the epoch, and the handle in a snapshot would be invalid after the first attempt to end it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import kafka.errors
from kafka.protocol.admin.transactions import DescribeTransactionsRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from storage_lib.errors import InvalidInputError, LeaseLostError, NotFoundError
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster, Retries, is_worth_retrying, refuse
from storage_lib.log_store.log_store import EndOutcome, TransactionHandle

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock

_INIT_VERSION_MAX = 4
_JOIN_VERSION_MAX = 3
_END_VERSION_MAX = 3
_NEW_PRODUCER = -1
_EMPTY_STATE = "Empty"

_FENCED = (
    kafka.errors.ProducerFencedError,
    kafka.errors.InvalidProducerEpochError,
    kafka.errors.InvalidProducerIdMappingError,
    kafka.errors.TransactionalIdNotFoundError,
)
_MOVED = (
    kafka.errors.NotCoordinatorError,
    kafka.errors.CoordinatorNotAvailableError,
    kafka.errors.KafkaConnectionError,
    kafka.errors.NodeNotReadyError,
    kafka.errors.UnknownBrokerIdError,
    kafka.errors.RequestTimedOutError,
    kafka.errors.KafkaTimeoutError,
)


class KafkaTransactions:
    """The transactions on one topic."""

    def __init__(self, cluster: KafkaCluster, topic: str, clock: Clock) -> None:
        """Send requests over the connections of ``cluster``."""
        self._cluster = cluster
        self._topic = topic
        self._clock = clock

    def begin(self, transactional_id: str, timeout_ms: int) -> TransactionHandle:
        """Fence earlier producers of the id, abort their open transaction and give the id its next epoch."""
        retries = self._cluster.retries(self._clock, f"begin transaction {transactional_id}")
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=_NEW_PRODUCER,
            producer_epoch=_NEW_PRODUCER,
            max_version=_INIT_VERSION_MAX,
        )
        while True:
            node = self._cluster.coordinators([transactional_id], retries)[transactional_id]
            try:
                answer = self._cluster.ask(node, request)
                error = kafka.errors.for_code(answer.error_code)
            except kafka.errors.KafkaError as failure:
                error = type(failure)
            if error is kafka.errors.NoError:
                return TransactionHandle(
                    transactional_id=transactional_id,
                    producer_id=answer.producer_id,
                    producer_epoch=answer.producer_epoch,
                )
            if error is kafka.errors.InvalidTransactionTimeoutError:
                message = (
                    f"Kafka refuses a transaction timeout of {timeout_ms} ms; set log.transaction.timeout to at most "
                    "the brokers' transaction.max.timeout.ms (15 min unless changed), or raise that"
                )
                raise InvalidInputError(message)
            self._wait_or_give_up(error, transactional_id, retries)

    def join(self, handle: TransactionHandle, buckets: Sequence[int]) -> None:
        """Add Kafka partitions to the transaction; required before their first record is sent."""
        retries = self._cluster.retries(self._clock, f"join {self._topic!r} to {handle.transactional_id}")
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=self._topic, partitions=list(buckets))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=handle.transactional_id,
            v3_and_below_producer_id=handle.producer_id,
            v3_and_below_producer_epoch=handle.producer_epoch,
            v3_and_below_topics=[topic],
            max_version=_JOIN_VERSION_MAX,
        )
        while True:
            node = self._cluster.coordinators([handle.transactional_id], retries)[handle.transactional_id]
            try:
                answer = self._cluster.ask(node, request)
            except kafka.errors.KafkaError as failure:
                self._wait_or_give_up(type(failure), handle.transactional_id, retries)
                continue
            codes = [
                partition.partition_error_code
                for result in answer.results_by_topic_v3_and_below
                for partition in result.results_by_partition
            ]
            errors = {kafka.errors.for_code(code) for code in codes if code}
            if not errors:
                return
            errors -= {kafka.errors.OperationNotAttemptedError}
            self._wait_or_give_up(next(iter(errors)), handle.transactional_id, retries)

    def end_all(self, handles: Sequence[TransactionHandle], *, commit: bool) -> tuple[EndOutcome, ...]:
        """End the transactions in parallel; return once readers see the outcome.

        The coordinator answers as soon as it has stored the decision, before the markers are in the topic. So each
        transaction is ended twice: while markers are missing, the answer is CONCURRENT_TRANSACTIONS.
        """
        act = f"{'commit' if commit else 'abort'} {len(handles)} transactions on {self._topic!r}"
        retries = self._cluster.retries(self._clock, act)
        outcomes: dict[TransactionHandle, EndOutcome] = {}
        decided: set[TransactionHandle] = set()
        while True:
            left = [handle for handle in dict.fromkeys(handles) if handle not in outcomes]
            if not left:
                return tuple(outcomes[handle] for handle in handles)
            reasons = []
            for handle, error in zip(left, self._end_errors(left, retries, commit=commit), strict=True):
                if error is kafka.errors.NoError:
                    if handle in decided:
                        outcomes[handle] = EndOutcome.ENDED
                    decided.add(handle)
                elif issubclass(error, _FENCED):
                    outcomes[handle] = EndOutcome.ENDED if handle in decided else EndOutcome.FENCED
                elif error is kafka.errors.InvalidTxnStateError:
                    is_over = handle in decided or self._is_empty(handle, retries)
                    outcomes[handle] = EndOutcome.ENDED if is_over else EndOutcome.FENCED
                else:
                    self._learn(error, handle.transactional_id, retries)
                    reasons.append(error.__name__)
            if reasons:
                retries.wait(reasons[0])

    def _end_errors(
        self, handles: Sequence[TransactionHandle], retries: Retries, *, commit: bool
    ) -> list[type[Exception]]:
        nodes = self._cluster.coordinators([handle.transactional_id for handle in handles], retries)
        requests = [
            (
                nodes[handle.transactional_id],
                EndTxnRequest(
                    transactional_id=handle.transactional_id,
                    producer_id=handle.producer_id,
                    producer_epoch=handle.producer_epoch,
                    committed=commit,
                    max_version=_END_VERSION_MAX,
                ),
            )
            for handle in handles
        ]
        return [
            type(answer) if isinstance(answer, Exception) else kafka.errors.for_code(answer.error_code)
            for answer in self._cluster.ask_all(requests)
        ]

    def _is_empty(self, handle: TransactionHandle, retries: Retries) -> bool:
        """Whether the transaction is still current and empty, so that it need not be ended."""
        request = DescribeTransactionsRequest(transactional_ids=[handle.transactional_id])
        while True:
            node = self._cluster.coordinators([handle.transactional_id], retries)[handle.transactional_id]
            try:
                (state,) = self._cluster.ask(node, request).transaction_states
                error = kafka.errors.for_code(state.error_code)
            except kafka.errors.KafkaError as failure:
                error = type(failure)
            if error is kafka.errors.NoError:
                is_same = (state.producer_id, state.producer_epoch) == (handle.producer_id, handle.producer_epoch)
                return bool(is_same and state.transaction_state == _EMPTY_STATE)
            if issubclass(error, _FENCED):
                return False
            self._learn(error, handle.transactional_id, retries)
            retries.wait(error.__name__)

    def _wait_or_give_up(self, error: type[Exception], transactional_id: str, retries: Retries) -> None:
        if issubclass(error, (*_FENCED, kafka.errors.InvalidTxnStateError)):
            raise lost(transactional_id, error)
        self._learn(error, transactional_id, retries)
        retries.wait(error.__name__)

    def _learn(self, error: type[Exception], transactional_id: str, retries: Retries) -> None:
        refuse(error, transactional_id)
        if error is kafka.errors.UnknownTopicOrPartitionError and retries.believes_absence():
            message = f"Kafka has no topic {self._topic!r} with enough partitions; was the table dropped or re-created?"
            raise NotFoundError(message)
        if issubclass(error, _MOVED):
            self._cluster.forget_coordinator(transactional_id)
        elif not is_worth_retrying(error):
            message = f"Kafka answers {error.__name__} to transaction {transactional_id}; see the broker's log"
            raise InvalidInputError(message)


def lost(transactional_id: str, error: type[Exception]) -> LeaseLostError:
    """Return the error for a writer whose transaction was ended by another process."""
    return LeaseLostError(
        f"transaction {transactional_id} was ended by another process ({error.__name__}): a successor took the lease, "
        "or the transaction timed out (log.transaction.timeout); begin again with a new lease"
    )
