"""A restarted broker does not know its topics yet; clients must not treat that as a missing topic."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import kafka.errors
import pytest

from storage_lib.errors import NotFoundError
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster
from storage_lib.log_store.kafka.kafka_topic import KafkaTopic
from tests.support.fake_environment import FakeClock

UNKNOWN = kafka.errors.UnknownTopicOrPartitionError.errno
MARK = "message.timestamp.before.max.ms"


class RestartedBroker(KafkaCluster):
    """Replies from a script: an outage, then "no such topic" for some replies, then the truth."""

    def __init__(self, clock: FakeClock, *, outage_seconds: float, unknown_answers: int) -> None:
        super().__init__({"bootstrap_servers": "127.0.0.1:9"}, 30_000)
        self._clock = clock
        self._up_at = clock.monotonic() + outage_seconds
        self.unknown_answers = unknown_answers
        self.deleted: list[str] = []

    def ask(self, node: int | None, request: Any) -> Any:
        del node
        if self._clock.monotonic() < self._up_at:
            raise kafka.errors.NodeNotReadyError
        kind = type(request).__name__
        if kind == "DeleteTopicsRequest":
            self.deleted += request.topic_names
            self.unknown_answers = 1
            return SimpleNamespace(responses=[SimpleNamespace(error_code=0)])
        self.unknown_answers -= 1
        code = UNKNOWN if self.unknown_answers >= 0 else 0
        if kind == "MetadataRequest":
            partitions = [SimpleNamespace(partition_index=0, leader_id=1)]
            topic = SimpleNamespace(error_code=code, topic_id=None, partitions=[] if code else partitions)
            return SimpleNamespace(topics=[topic])
        configs = [] if code else [SimpleNamespace(name=MARK, value="1"), SimpleNamespace(name="a", value="b")]
        return SimpleNamespace(results=[SimpleNamespace(error_code=code, configs=configs)])

    def _learn_brokers(self, metadata: Any) -> None:
        del metadata


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def broker(clock: FakeClock) -> Iterator[RestartedBroker]:
    broker = RestartedBroker(clock, outage_seconds=4, unknown_answers=3)
    yield broker
    broker.close()


def test_leaders_are_found_at_a_broker_that_was_gone_and_forgets_the_topic_at_first(
    clock: FakeClock, broker: RestartedBroker
) -> None:
    assert broker.leaders("t", broker.retries(clock, "look")) == {0: 1}


def test_the_configuration_is_found_at_a_broker_that_forgets_the_topic_at_first(
    clock: FakeClock, broker: RestartedBroker
) -> None:
    assert KafkaTopic(broker, "t", "uuid", clock).configs()["a"] == "b"


def test_a_topic_that_stays_unknown_is_not_found_and_says_why(clock: FakeClock, broker: RestartedBroker) -> None:
    broker.unknown_answers = 1_000

    with pytest.raises(NotFoundError, match="no topic 't'"):
        broker.leaders("t", broker.retries(clock, "look"))
    with pytest.raises(NotFoundError, match="topic 't' does not exist"):
        KafkaTopic(broker, "t", "uuid", clock).configs()


def test_a_drop_deletes_a_topic_that_a_restarted_broker_forgets_at_first(
    clock: FakeClock, broker: RestartedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the topic would be left behind permanently: the table is dropped, and nothing refers to the topic."""
    topic = KafkaTopic(broker, "t", "uuid", clock)
    monkeypatch.setattr(topic, "_mark", "1")

    topic.drop()

    assert broker.deleted == ["t"]
