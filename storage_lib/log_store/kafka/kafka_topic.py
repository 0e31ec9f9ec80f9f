"""Create, identify, describe and delete a table's topic.

A topic has no free-text property, so its mark is the value of a setting with no practical effect: the maximum age of
a record, ``message.timestamp.before.max.ms``. It is set to more than 146 million years; its lower 62 bits are the
first 62 bits of the SHA-256 of the table's uuid. The request that creates the topic sets it, it never expires, and it
is copied with the topic's configuration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest

from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster, Retries, is_worth_retrying, refuse

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock

_MARK_CONFIG = "message.timestamp.before.max.ms"
_MARK_BITS = 62
_FOREVER_MS = (1 << 63) - 1
_TOPIC_RESOURCE = 2
_CLUSTER_DEFAULT = -1
_KAFKA_BATCH_BYTES_MAX = 1_048_588
_CREATE_VERSION_MIN = 4
_DELETE_VERSION_MAX = 5
_UNKNOWN = kafka.errors.UnknownTopicOrPartitionError


class KafkaTopic:
    """The topic of one table."""

    def __init__(self, cluster: KafkaCluster, name: str, mark: str, clock: Clock) -> None:
        """Manage the topic ``name`` for the table with this mark (``mark_of``)."""
        self._cluster = cluster
        self._name = name
        self._mark = mark
        self._clock = clock
        self._known_as_ours: tuple[str | None] | None = None

    def create(self, *, partition_count: int, retention_ms: int | None, replication_factor: int | None) -> None:
        """Create the topic unless an earlier attempt for the same table already did.

        Raises ``AlreadyExistsError`` for another table's topic, ``InvalidInputError`` if Kafka refuses.
        """
        retries = self._retries("create")
        configs = {
            "cleanup.policy": "delete",
            "message.timestamp.type": "CreateTime",
            # Nothing depends on a record's timestamp, so a writer whose clock is ahead need not be refused.
            "message.timestamp.after.max.ms": str(_FOREVER_MS),
            _MARK_CONFIG: self._mark,
        }
        if retention_ms is not None:
            configs["retention.ms"] = str(retention_ms)
        creatable = CreateTopicsRequest.CreatableTopic
        topic = creatable(
            name=self._name,
            num_partitions=partition_count,
            replication_factor=replication_factor or _CLUSTER_DEFAULT,
            assignments=[],
            configs=[creatable.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=retries.limit_ms, validate_only=False, min_version=_CREATE_VERSION_MIN
        )
        while True:
            error, detail = self._send(request, lambda answer: answer.topics[0])
            if error in (kafka.errors.NoError, kafka.errors.TopicAlreadyExistsError):
                break
            self._wait(error, detail, retries)
        if error is kafka.errors.TopicAlreadyExistsError and not self._is_ours(retries):
            message = (
                f"topic {self._name!r} exists and is not this table's log; choose another with log.kafka.topic, or "
                "delete it if it is unused (`dynamic-table orphans --topics` lists topics left by an interrupted "
                "CREATE)"
            )
            raise AlreadyExistsError(message)
        self._cluster.forget_leaders(self._name)
        found = len(self._cluster.leaders(self._name, retries))
        if found != partition_count:
            message = f"topic {self._name!r} has {found} partitions, but the table has {partition_count} buckets"
            raise AlreadyExistsError(message)

    def drop(self) -> None:
        """Delete the topic if it exists. Raises ``NotFoundError``, and keeps the topic, if it is not this table's."""
        retries = self._retries("drop")
        try:
            is_ours = self._is_ours(retries)
        except NotFoundError:
            return
        if not is_ours:
            message = f"topic {self._name!r} is not this table's log and was kept; delete it by hand if it is unused"
            raise NotFoundError(message)
        request = DeleteTopicsRequest(
            topic_names=[self._name], timeout_ms=retries.limit_ms, max_version=_DELETE_VERSION_MAX
        )
        while True:
            error, detail = self._send(request, lambda answer: answer.responses[0])
            if error in (kafka.errors.NoError, _UNKNOWN):
                break
            self._wait(error, detail, retries)
        self._wait_until_removed(retries)

    def id(self) -> str | None:
        """See ``LogStore.log_id``."""
        return self._cluster.topic_id(self._name, self._retries("look up"))

    def refuse_others(self) -> None:
        """Raise ``InvalidInputError`` if the topic is not this table's; checked again only after it was recreated.

        The check is skipped if this user may not describe topics.
        """
        found = self.id()
        if self._known_as_ours == (found,):
            return
        try:
            is_ours = self._is_ours(self._retries("look at"))
        except InvalidInputError:
            is_ours = True
        if not is_ours:
            message = (
                f"topic {self._name!r} is not this table's log: it was created by another program or table. Delete "
                "it and run create_table(..., if_not_exists=True) to recreate the log; then start readers again with "
                "log.scan=full"
            )
            raise InvalidInputError(message)
        self._known_as_ours = (found,)

    def configs(self) -> Mapping[str, str]:
        """Return the topic's effective configuration. Raises ``NotFoundError`` if the topic does not exist."""
        return self._configs(self._retries("describe"))

    def batch_bytes_max(self) -> int:
        """Return the maximum size of a compressed record batch in bytes; cached while the connections last."""
        known = self._cluster.batch_bytes_max.get(self._name)
        if known is None:
            try:
                known = int(self.configs()["max.message.bytes"])
            except (InvalidInputError, KeyError):
                known = _KAFKA_BATCH_BYTES_MAX  # this user may not describe the topic
            self._cluster.batch_bytes_max[self._name] = known
        return known

    def _configs(self, retries: Retries) -> Mapping[str, str]:
        while True:
            error, detail, configs = self._ask_configs()
            if error is kafka.errors.NoError:
                return configs
            if error is _UNKNOWN and retries.believes_absence():
                message = f"topic {self._name!r} does not exist; was the table dropped, or its log never created?"
                raise NotFoundError(message)
            self._wait(error, detail, retries)

    def _ask_configs(self) -> tuple[type[Exception], str, Mapping[str, str]]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=self._name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)
        configs: dict[str, str] = {}

        def result_of(answer: Any) -> Any:
            configs.update((config.name, config.value) for config in answer.results[0].configs)
            return answer.results[0]

        error, detail = self._send(request, result_of)
        return error, detail, configs

    def _is_ours(self, retries: Retries) -> bool:
        return self._configs(retries).get(_MARK_CONFIG) == self._mark

    def _wait_until_removed(self, retries: Retries) -> None:
        """Wait until all brokers report the topic as deleted, so that recreating it does not find the old one."""
        self._cluster.forget_leaders(self._name)
        while True:
            error, detail, _ = self._ask_configs()
            if error is _UNKNOWN:
                return
            if error is kafka.errors.NoError:
                retries.wait("the brokers still know the topic")
            else:
                self._wait(error, detail, retries)

    def _send(self, request: object, result_of: Any) -> tuple[type[Exception], str]:
        """Send to any broker, which forwards to the controller; return the error class and Kafka's message."""
        try:
            result = result_of(self._cluster.ask(None, request))
        except kafka.errors.KafkaError as failure:
            return type(failure), str(failure)
        return kafka.errors.for_code(result.error_code), str(getattr(result, "error_message", None) or "")

    def _wait(self, error: type[Exception], detail: str, retries: Retries) -> None:
        refuse(error, self._name)
        if not is_worth_retrying(error):
            message = f"Kafka refuses topic {self._name!r}: {error.__name__}. {detail}"
            raise InvalidInputError(message)
        retries.wait(f"{error.__name__} {detail}")

    def _retries(self, verb: str) -> Retries:
        return self._cluster.retries(self._clock, f"{verb} topic {self._name!r}")


def mark_of(table_uuid: str) -> str:
    """Return the mark of that table's topics."""
    return str((1 << _MARK_BITS) | _first_bits(table_uuid))


def mark_in(configs: Mapping[str, str | None]) -> str | None:
    """Return the mark in a topic's configuration; None for a topic that this library did not create."""
    value = configs.get(_MARK_CONFIG) or ""
    is_mark = value.isascii() and value.isdigit() and int(value) >> _MARK_BITS == 1 and int(value) != _FOREVER_MS
    return value if is_mark else None


def _first_bits(table_uuid: str) -> int:
    digest = hashlib.sha256(table_uuid.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _MARK_BITS)
