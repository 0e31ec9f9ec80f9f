"""Topics of a Kafka cluster, by the options of a source: their names, and each as a log of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from storage_lib.log_store.external.external_topic import ExternalTopic

if TYPE_CHECKING:
    from storage_lib.log_store.codec.record_log import RecordLog

_NO_COLUMN = pa.schema([("_", pa.string())])


class TopicList(Protocol):
    """Topics by name."""

    def names(self) -> list[str]:
        """Return the names of all topics, sorted."""

    def log(self, topic: str) -> RecordLog:
        """Return a topic as a log of records; ``NotFoundError`` if it does not exist."""


@dataclass(frozen=True, slots=True)
class KafkaTopicList:
    """Topics of the cluster that ``options`` name (``log.kafka.*``)."""

    options: Mapping[str, str] = field(repr=False)

    def names(self) -> list[str]:
        """See ``TopicList.names``. Raises ``UnavailableError`` if no broker answers."""
        return self._topic("_").names_in_cluster()

    def log(self, topic: str) -> RecordLog:
        """See ``TopicList.log``. Connections are shared in the process."""
        return self._topic(topic).log()

    def _topic(self, name: str) -> ExternalTopic:
        return ExternalTopic.parse({**self.options, "topic": name}, _NO_COLUMN)
