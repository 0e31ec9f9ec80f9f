"""Topics that this library made and no table uses: logs from before a rewriting, and those of tables that are gone.

A topic has the mark of its table. A mark of no table of this catalog may belong to another warehouse, which may
have its logs on the same brokers. Such topics are listed, and deleted only if the caller confirms it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from storage_lib.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanTopic:
    """One find. ``table`` is the one whose log it was, None if none here bears its mark."""

    topic: str
    mark: str
    table: str | None

    @property
    def what(self) -> str:
        """In words."""
        if self.table is None:
            return "a log that belongs to no table of this catalog"
        return f"a log that table {self.table} has left behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTopics:
    """Of one table: its mark, and the topics that it reads and writes, or is about to."""

    table: str
    mark: str
    used: frozenset[str]


class MarkedTopics(Protocol):
    """What brokers know: ``KafkaMarkedTopics``."""

    def find(self) -> Mapping[str, str]:
        """Name and mark of every topic that bears one."""

    def delete(self, topic: str, mark: str) -> None:
        """Delete a topic that bears this mark."""


class OrphanTopics:
    """``tables`` reads every table of the catalog, including files without an entry, at each call.

    It has to raise for a table that can't be read: its topic would be taken for nobody's.
    """

    def __init__(self, topics: MarkedTopics, tables: Callable[[], Iterable[TableTopics]]) -> None:
        self._topics = topics
        self._tables = tables

    def find(self) -> Iterator[OrphanTopic]:
        """Look at every topic. Those that were there before the tables are looked at, so none is in the making."""
        marked = self._topics.find()
        by_mark = {each.mark: each for each in self._tables()}
        for topic, mark in sorted(marked.items()):
            owner = by_mark.get(mark)
            if owner is None or topic not in owner.used:
                yield OrphanTopic(topic=topic, mark=mark, table=None if owner is None else owner.table)

    def delete(self, orphan: OrphanTopic, *, is_sole_catalog: bool) -> None:
        """Delete what was found, if it is an orphan still.

        Raises ``InvalidInputError`` for a topic of no table here, unless ``is_sole_catalog``: no other catalog has
        logs on these brokers.
        """
        if orphan.table is None and not is_sole_catalog:
            message = (
                f"topic {orphan.topic!r} belongs to no table of this catalog, but may belong to another catalog on the "
                "same brokers; pass --sole-catalog if no other catalog uses them, to delete it"
            )
            raise InvalidInputError(message)
        if orphan in self.find():
            self._topics.delete(orphan.topic, orphan.mark)
