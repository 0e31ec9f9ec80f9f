"""Ends a transaction that its coordinator believes to be over, but whose end a Kafka partition was never told.

A broker that was killed and is back may abort a transaction before it knows again who leads the topic; it then takes
the partition for deleted and writes no marker. The next transaction of the same transactional id has the same producer
id, so its commit would show the aborted records as well. Looked for before the first record of each transaction, as
KIP-664 does by hand (``kafka-transactions.sh find-hanging`` and ``abort``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.kafka_cluster import KafkaCluster, Patience, is_worth_retrying, refuse

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock


def abort_forgotten(cluster: KafkaCluster, topic: str, bucket: int, producer_id: int, clock: Clock) -> None:
    """Abort what ``producer_id`` left open in ``bucket``; to be called when it has begun anew and written nothing yet.

    Raises ``InvalidInputError`` with the remedy where this user may not end it, ``UnavailableError`` for outages.
    """
    patience = cluster.patience(clock, f"look for forgotten transactions in bucket {bucket} of {topic!r}")
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[bucket])
    described = _partition(cluster, topic, bucket, DescribeProducersRequest(topics=[asked]), patience)
    for producer in described.active_producers:
        if producer.producer_id == producer_id and producer.current_txn_start_offset >= 0:
            _abort(cluster, topic, bucket, producer, patience)


def _abort(cluster: KafkaCluster, topic: str, bucket: int, producer: Any, patience: Patience) -> None:
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(name=topic, partition_indexes=[bucket])
        ],
        coordinator_epoch=producer.coordinator_epoch,
    )
    try:
        _partition(cluster, topic, bucket, WriteTxnMarkersRequest(markers=[marker]), patience)
    except kafka.errors.ClusterAuthorizationFailedError as error:
        start = producer.current_txn_start_offset
        message = (
            f"log {topic!r}, bucket {bucket}: a transaction that begins at offset {start} was aborted, but the broker "
            "lost its marker, so whatever is committed next would show its records as well. This user may not end it: "
            f"run kafka-transactions.sh abort --topic {topic} --partition {bucket} --start-offset {start}, or grant it "
            "CLUSTER_ACTION"
        )
        raise InvalidInputError(message) from error


def _partition(cluster: KafkaCluster, topic: str, bucket: int, request: object, patience: Patience) -> Any:
    """The leader's answer for one Kafka partition, without an error that may pass."""
    while True:
        node = cluster.leaders(topic, patience).get(bucket)
        try:
            answer = cluster.ask(node, request)
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
        patience.wait(error.__name__)
