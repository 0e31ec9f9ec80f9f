"""A topic that another process deletes and creates again, while this one knows the former."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import SystemClock
from tests.support.waiting import wait_until

pytest.importorskip("kafka")

from kafka.admin import KafkaAdminClient, NewTopic

from storage_lib.log_store.kafka.kafka_bucket_reader import LATEST, KafkaBucketReader
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster

if TYPE_CHECKING:
    from local_kafka import LocalKafka

TOPIC = "test_recreated_topic"


def test_a_reader_finds_the_partitions_that_the_topic_has_now(kafka: LocalKafka) -> None:
    """As a process of Spark that outlives a table, and reads the next one of this name, which has more buckets."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    admin.create_topics([NewTopic(TOPIC, 1, 1)])
    reader = KafkaBucketReader(
        KafkaCluster.shared({"bootstrap_servers": kafka.bootstrap_servers}, 30_000), TOPIC, SystemClock()
    )
    assert reader.offsets({0: LATEST}) == {0: 0}

    admin.delete_topics([TOPIC])
    wait_until(lambda: TOPIC not in admin.list_topics())
    admin.create_topics([NewTopic(TOPIC, 2, 1)])
    admin.close()

    assert reader.offsets({0: LATEST, 1: LATEST}) == {0: 0, 1: 0}
    with pytest.raises(InvalidInputError, match="has 2 partitions, but bucket 2 was asked for"):
        reader.offsets({2: LATEST})
