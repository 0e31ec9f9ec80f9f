"""One case of the differential test as a value: tables, a history of the source, a query, a sink.

A case is a function of its seed; ``shrink`` derives smaller cases by removing parts. Only the text of the query
refers to Spark or DuckDB, and both accept it.
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
"""``("+U", row)``. A deletion needs only the key columns."""
LogMode: TypeAlias = Literal["none", "upsert", "all-lookup", "all-input"]

SOURCE, DIMENSION, DETAILS = "@src@", "@dim@", "@details@"
"""Placeholders in a query for the source and for the two tables that are read as snapshots."""

DIMENSION_COLUMNS = (("cat", "INT"), ("name", "STRING"), ("low", "BIGINT"))
DETAILS_COLUMNS = (("cat", "INT"), ("tag", "BIGINT"), ("note", "STRING"))


@dataclass(frozen=True, kw_only=True)
class Source:
    """The table whose changes are streamed. ``key`` is empty for a table without one.

    ``columns`` are (name, type); ``partition`` is one of them. With ``log`` ``none`` the stream follows the
    snapshots.
    """

    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    partition: str | None
    buckets: int
    log: LogMode
    is_append_only: bool = False
    is_eventual: bool = False
    """The log is written first; the files follow at each Compact of the history."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Primary key as the table declares it, including the partition column."""
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
    """One SELECT: rows of ``tables`` (the text of a FROM clause) that satisfy all ``conditions``."""

    items: tuple[Item, ...]
    tables: str
    conditions: tuple[str, ...] = ()
    hint: str = ""

    def text(self, carried: Sequence[str] = ()) -> str:
        """Return the SELECT, with ``carried`` columns of the source in addition to the answer's."""
        items = [f"{item.sql} AS {item.name}" for item in self.items] + [f"s.{name} AS {name}" for name in carried]
        where = f" WHERE {' AND '.join(f'({each})' for each in self.conditions)}" if self.conditions else ""
        return f"SELECT {self.hint}{', '.join(items)} FROM {self.tables}{where}"  # noqa: S608  a query of our own


@dataclass(frozen=True, kw_only=True)
class StreamQuery:
    """Branches combined by UNION ALL, either directly or inside another SELECT."""

    branches: tuple[Branch, ...]
    form: Literal["plain", "subquery", "cte"] = "plain"
    carried: tuple[str, ...] = ()
    """Row kind and position columns that the query itself selects, as a user may write it."""

    @property
    def text(self) -> str:
        """Batch query whose answer the sink must hold."""
        return self._text(())

    @property
    def streamed_text(self) -> str:
        """Query text of the streaming INSERT."""
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
    """The target table; its columns are the query's. ``key`` is empty for a table without one.

    ``aggregates``: the table counts the rows of each value by an aggregate function instead of having no key.
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
    """One commit of changes; an empty one commits nothing."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """A tracked overwrite of the whole table, or of one partition."""

    rows: tuple[Row, ...]
    partition: Value = None


@dataclass(frozen=True, kw_only=True)
class Compact:
    """A compaction of the source; readers see no change."""

    full: bool


@dataclass(frozen=True, kw_only=True)
class Drain:
    """Run the streaming INSERT until it has written everything, in batches of about ``rows_max`` rows."""

    rows_max: int | None = None


@dataclass(frozen=True, kw_only=True)
class MoveDimension:
    """Replace the dimension's rows by a tracked overwrite. Rows already written to the sink may keep the old values."""

    rows: tuple[Row, ...]


Step: TypeAlias = Append | Overwrite | Compact | MoveDimension | Drain


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case of the test. ``dimension`` has at most one row per ``cat``, ``details`` any number."""

    seed: int
    source: Source
    dimension: tuple[Row, ...]
    details: tuple[Row, ...]
    query: StreamQuery
    sink: Sink
    steps: tuple[Step, ...]
    normalize: str | None = None
    """Value of `scan.normalize` in the query's hint, if any."""
    from_snapshot: bool = True
    """Whether the stream begins with a snapshot or with the first change."""
    conf: tuple[tuple[str, str], ...] = ()
    """Spark settings that affect its plan."""

    def __str__(self) -> str:
        return pprint.pformat(self, width=150, compact=True)
