"""One case of the differential test as a value: tables, a history of the source, a query, a sink.

A case is a function of its seed, and smaller ones are made of it by taking parts away (``shrink``). Nothing in it is
specific to Spark or to DuckDB but the text of the query, which both understand.
"""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = object
Row: TypeAlias = tuple[Value, ...]
"""Values in the order of a table's columns."""
Change: TypeAlias = tuple[str, Row]
"""``("+U", row)``. Of a deletion only the key need be there."""
LogMode: TypeAlias = Literal["none", "upsert", "all-lookup", "all-input"]

SOURCE, DIMENSION, DETAILS = "@src@", "@dim@", "@details@"
"""What stands in a query for the name of the source, and of the two tables that are read as snapshots."""

DIMENSION_COLUMNS = (("cat", "INT"), ("name", "STRING"), ("low", "BIGINT"))
DETAILS_COLUMNS = (("cat", "INT"), ("tag", "BIGINT"), ("note", "STRING"))


@dataclass(frozen=True, kw_only=True)
class Source:
    """The table whose changes are streamed. ``key`` is empty for a table without one.

    ``columns`` are (name, type); ``partition`` is one of them. ``log`` is ``none`` for a table that is followed by its
    snapshots.
    """

    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    partition: str | None
    buckets: int
    log: LogMode
    is_append_only: bool = False
    is_eventual: bool = False
    """Its log comes first, and the files follow where the history says Compact."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The key with the partition in it, as the table declares it."""
        return (self.partition, *self.key) if self.key and self.partition else self.key

    @property
    def key_places(self) -> tuple[int, ...]:
        return tuple(self.names.index(name) for name in self.primary_key)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One column of the answer: an expression, its type as a column of the sink, its name."""

    sql: str
    type: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One SELECT: rows come from ``tables`` (the text of a FROM clause) where all ``conditions`` hold."""

    items: tuple[Item, ...]
    tables: str
    conditions: tuple[str, ...] = ()
    hint: str = ""

    def text(self, carried: Sequence[str] = ()) -> str:
        """The SELECT, with columns of the source that are passed on in addition to the answer's."""
        items = [f"{item.sql} AS {item.name}" for item in self.items] + [f"s.{name} AS {name}" for name in carried]
        where = f" WHERE {' AND '.join(f'({each})' for each in self.conditions)}" if self.conditions else ""
        return f"SELECT {self.hint}{', '.join(items)} FROM {self.tables}{where}"  # noqa: S608  a query of our own


@dataclass(frozen=True, kw_only=True)
class StreamQuery:
    """Branches under UNION ALL, as they are or inside another SELECT."""

    branches: tuple[Branch, ...]
    form: Literal["plain", "subquery", "cte"] = "plain"
    carried: tuple[str, ...] = ()
    """Of the row's kind and its position what the query itself hands on, as a user may write it."""

    @property
    def text(self) -> str:
        """The batch query, whose answer the sink has to hold."""
        return self._text(())

    @property
    def streamed_text(self) -> str:
        """The query as it is inserted."""
        return self._text(self.carried)

    def _text(self, carried: Sequence[str]) -> str:
        inner = " UNION ALL ".join(branch.text(carried) for branch in self.branches)
        names = ", ".join(f"q.{name}" for name in (*(item.name for item in self.branches[0].items), *carried))
        if self.form == "subquery":
            return f"SELECT {names} FROM ({inner}) q"  # noqa: S608  likewise
        if self.form == "cte":
            return f"WITH q AS ({inner}) SELECT {names} FROM q"  # noqa: S608  likewise
        return inner


@dataclass(frozen=True, kw_only=True)
class Sink:
    """The table that is written; its columns are the query's. ``key`` is empty for a table without one.

    ``aggregates``: the table counts the rows of each value by an aggregate function rather than without a key.
    """

    key: tuple[str, ...]
    partition: str | None
    buckets: int
    log: LogMode
    consistency: Literal["transactional", "eventual"] = "transactional"
    is_append_only: bool = False
    aggregates: bool = False

    @property
    def primary_key(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.partition, *self.key))) if self.key and self.partition else self.key


@dataclass(frozen=True, kw_only=True)
class Append:
    """One commit of changes; without any it commits nothing."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """A tracked overwrite of the whole table, or of one partition."""

    rows: tuple[Row, ...]
    partition: Value = None


@dataclass(frozen=True, kw_only=True)
class Compact:
    """A compaction of the source; nothing that a reader could see changes."""

    full: bool


@dataclass(frozen=True, kw_only=True)
class Drain:
    """The streaming INSERT runs until it has written all that is there, in batches of about ``rows_max`` rows."""

    rows_max: int | None = None


@dataclass(frozen=True, kw_only=True)
class MoveDimension:
    """The dimension gets other rows, by a tracked overwrite. Rows that were written before may stay as they are."""

    rows: tuple[Row, ...]


Step: TypeAlias = Append | Overwrite | Compact | MoveDimension | Drain


@dataclass(frozen=True, kw_only=True)
class Case:
    """See the module. ``dimension`` has one row for a ``cat`` at most, ``details`` any number."""

    seed: int
    source: Source
    dimension: tuple[Row, ...]
    details: tuple[Row, ...]
    query: StreamQuery
    sink: Sink
    steps: tuple[Step, ...]
    normalize: str | None = None
    """What the query says of `scan.normalize`."""
    from_snapshot: bool = True
    """The stream begins with a snapshot; else with the first change."""
    conf: tuple[tuple[str, str], ...] = ()
    """Settings of Spark, by which it chooses its plan."""

    def __str__(self) -> str:
        return pprint.pformat(self, width=150, compact=True)
