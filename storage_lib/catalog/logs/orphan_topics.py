"""Topics that this library created and no table uses: logs from before a rescale, and logs of dropped tables.

A topic has the mark of its table. A mark that no table of this catalog has may belong to another warehouse with logs
on the same brokers. Such topics are listed, and deleted only if the caller confirms it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from storage_lib.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanTopic:
    """One orphan topic. ``table`` is the table with its mark, None if this catalog has no such table."""

    topic: str
    mark: str
    table: str | None

    @property
    def what(self) -> str:
        """Description for people."""
        if self.table is None:
            return "a log that belongs to no table of this catalog"
        return f"a log that table {self.table} has left behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTopics:
    """Topics of one table: its mark, and the topics that it uses or is about to use."""

    table: str
    mark: str
    used: frozenset[str]


class MarkedTopics(Protocol):
    """Access to the marked topics on the brokers; see ``KafkaMarkedTopics``."""

    def find(self) -> Mapping[str, str]:
        """Return the mark of every marked topic, by name."""

    def delete(self, topic: str, mark: str) -> None:
        """Delete a topic that has this mark."""


class OrphanTopics:
    """Finds and deletes orphan topics.

    ``tables`` reads every table of the catalog, including files without an entry, at each call. It has to raise for a
    table that can't be read: otherwise its topic would count as an orphan.
    """

    def __init__(self, topics: MarkedTopics, tables: Callable[[], Iterable[TableTopics]]) -> None:
        self._topics = topics
        self._tables = tables

    def find(self) -> Iterator[OrphanTopic]:
        """Yield the orphan topics. Topics are listed before tables, so that logs being created are not included."""
        marked = self._topics.find()
        by_mark = {each.mark: each for each in self._tables()}
        for topic, mark in sorted(marked.items()):
            owner = by_mark.get(mark)
            if owner is None or topic not in owner.used:
                yield OrphanTopic(topic=topic, mark=mark, table=None if owner is None else owner.table)

    def delete(self, orphan: OrphanTopic, *, is_sole_catalog: bool) -> None:
        """Delete a topic if it is still an orphan.

        Raises ``InvalidInputError`` for a topic without a table in this catalog, unless ``is_sole_catalog`` asserts
        that no other catalog has logs on these brokers.
        """
        if orphan.table is None and not is_sole_catalog:
            message = (
                f"topic {orphan.topic!r} belongs to no table of this catalog, but may belong to another catalog on the "
                "same brokers; pass --sole-catalog if no other catalog uses them, to delete it"
            )
            raise InvalidInputError(message)
        if orphan in self.find():
            self._topics.delete(orphan.topic, orphan.mark)
