"""Abort hanging transactions: the coordinator considers them ended, but a Kafka partition has no end marker.

A restarted broker may abort a transaction before it has loaded the topic's leaders again; it then treats the partition
as deleted and writes no marker. The next transaction of the same transactional id has the same producer id, so its
commit would make the aborted records visible as well. We check before the first record of each transaction, as KIP-664
does by hand (``kafka-transactions.sh find-hanging`` and ``abort``).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster, Retries, is_worth_retrying, refuse

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock


@contextmanager
def forgotten_aborted(cluster: KafkaCluster, topic: str, bucket: int, producer_id: int, clock: Clock) -> Iterator[None]:
    """Abort a hanging transaction of ``producer_id`` in ``bucket`` after the body, before the first new record.

    The query is in flight while the body runs. Raises ``InvalidInputError`` with the remedy if this user may not abort
    the transaction, ``UnavailableError`` for outages.
    """
    retries = cluster.retries(clock, f"look for forgotten transactions in bucket {bucket} of {topic!r}")
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[bucket])
    request = DescribeProducersRequest(topics=[asked])
    pending = cluster.submit(cluster.leaders(topic, retries).get(bucket), request)
    yield
    for producer in _partition(cluster, topic, bucket, request, retries, pending).active_producers:
        if producer.producer_id == producer_id and producer.current_txn_start_offset >= 0:
            _abort(cluster, topic, bucket, producer, retries)


def _abort(cluster: KafkaCluster, topic: str, bucket: int, producer: Any, retries: Retries) -> None:
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(name=topic, partition_indexes=[bucket])
        ],
        coordinator_epoch=producer.coordinator_epoch,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    try:
        pending = cluster.submit(cluster.leaders(topic, retries).get(bucket), request)
        _partition(cluster, topic, bucket, request, retries, pending)
    except kafka.errors.ClusterAuthorizationFailedError as error:
        start = producer.current_txn_start_offset
        message = (
            f"log {topic!r}, bucket {bucket}: a transaction that begins at offset {start} was aborted, but the broker "
            "lost its marker, so the next commit would make its records visible as well. This user may not end it: "
            f"run kafka-transactions.sh abort --topic {topic} --partition {bucket} --start-offset {start}, or grant it "
            "CLUSTER_ACTION"
        )
        raise InvalidInputError(message) from error


def _partition(
    cluster: KafkaCluster, topic: str, bucket: int, request: object, retries: Retries, pending: Future[Any]
) -> Any:
    """Return the leader's answer to ``pending`` for one Kafka partition; retry transient errors."""
    while True:
        try:
            answer = cluster.answer(pending)
            topics = answer.markers[0].topics if hasattr(answer, "markers") else answer.topics
            partition = topics[0].partitions[0]
            error = kafka.errors.for_code(partition.error_code)
        except kafka.errors.KafkaError as failure:
            error = type(failure)
        if error is kafka.errors.NoError:
            return partition
        if error is kafka.errors.ClusterAuthorizationFailedError:
            raise error
        refuse(error, topic)
        if not is_worth_retrying(error):
            message = f"log {topic!r}, bucket {bucket}: Kafka answers {error.__name__} about producers; see its log"
            raise InvalidInputError(message)
        cluster.forget_leaders(topic)
        retries.wait(error.__name__)
        pending = cluster.submit(cluster.leaders(topic, retries).get(bucket), request)
