"""Which topics a sync reads, and the table that each becomes.

topics='shop.public.*'                  shop.public.orders   ─▶ orders
prefix='raw_', suffix='_v1'             shop.public.orders   ─▶ raw_orders_v1
rename={'orders_[0-9]+': 'orders'}      shop.public.orders_7 ─▶ orders, with merge_shards=True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.sync.renaming import check_expression, renamed

_INTERNAL = "__"
"""Beginning of the topics that belong to Kafka and to connectors themselves: offsets, heartbeats."""

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRules:
    """``topics`` and ``exclude`` are patterns of topics, with ``*`` and ``?``; ``into`` is the database of the tables.

    ``rename`` has regular expressions (of RE2) for the whole last part of a topic's name, each with the table's name,
    which may name groups as in ``re.sub``; the first that matches counts. ``prefix`` and ``suffix`` are added
    afterwards.
    """

    topics: tuple[str, ...]
    into: str
    exclude: tuple[str, ...] = ()
    prefix: str = ""
    suffix: str = ""
    rename: Mapping[str, str] = field(default_factory=dict)
    merge_shards: bool = False

    def __post_init__(self) -> None:
        """Refuse expressions and names that can't be used, before anything is read."""
        if not self.topics:
            message = "a sync needs a pattern of topics, such as 'shop.public.*'"
            raise InvalidInputError(message)
        for expression in self.rename:
            check_expression(expression)
        TableName.parse_plain(f"{self.into}.{self.prefix}t{self.suffix}")

    def chosen(self, names: Iterable[str], logs: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Return the topics of each table, both in order; ``logs`` are tables of the catalog by the topic of their log.

        These are not read: a table would follow itself. Raises ``NotFoundError`` if no topic is left, and
        ``InvalidInputError`` for a topic that gives no table name, or several that give the same one.
        """
        every = sorted(names)
        mine = [name for name in every if self._matches(name) and name not in logs]
        if not mine:
            own = [name for name in every if self._matches(name)]
            raise NotFoundError(self._nothing(every, logs[own[0]] if own else None))
        found: dict[str, list[str]] = {}
        for name in mine:
            found.setdefault(self.table_of(name), []).append(name)
        if not self.merge_shards:
            for table, topics in found.items():
                if len(topics) > 1:
                    message = (
                        f"topics {topics[0]!r} and {topics[1]!r} both become table {table}. Tell them apart (rename, "
                        "prefix), exclude one, or merge them on purpose with merge_shards=True"
                    )
                    raise InvalidInputError(message)
        return {table: tuple(topics) for table, topics in sorted(found.items())}

    def table_of(self, topic: str) -> str:
        """Return the name of a topic's table, with its database."""
        last = topic.rpartition(".")[2]
        for expression, replacement in self.rename.items():
            new = renamed(expression, replacement, last)
            if new is not None:
                last = new
                break
        name = f"{self.into}.{self.prefix}{last}{self.suffix}"
        try:
            return str(TableName.parse_plain(name))
        except InvalidInputError as error:
            message = f"topic {topic!r} would become table {name!r}: {error}. Give it another name with rename"
            raise InvalidInputError(message) from error

    def _matches(self, topic: str) -> bool:
        if topic.startswith(_INTERNAL):
            return False
        is_named = any(fnmatchcase(topic, pattern) for pattern in self.topics)
        return is_named and not any(fnmatchcase(topic, pattern) for pattern in self.exclude)

    def _nothing(self, names: Sequence[str], of_log: str | None) -> str:
        asked = ", ".join(self.topics)
        if of_log is not None:
            return f"topics {asked}: only logs of tables match, such as that of {of_log}, which no sync reads"
        others = [name for name in names if not name.startswith(_INTERNAL)]
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        return f"no topic matches {asked}; Kafka has {', '.join(others[:_SHOWN]) or 'none'}{more}"
