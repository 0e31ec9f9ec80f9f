"""Topics in memory, by name; see ``RawTopic``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage_lib.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from tests.support.raw_topic import RawTopic


@dataclass
class RawTopics:
    """A ``TopicList``. ``down`` are topics that do not answer."""

    topics: dict[str, RawTopic] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)

    def names(self) -> list[str]:
        """See ``TopicList.names``."""
        return sorted(self.topics)

    def log(self, topic: str) -> RawTopic:
        """See ``TopicList.log``."""
        if topic in self.down:
            message = f"topic {topic} does not answer"
            raise UnavailableError(message)
        if topic not in self.topics:
            raise NotFoundError(topic)
        return self.topics[topic]
