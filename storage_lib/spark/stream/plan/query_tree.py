"""A streaming query as a tree of plain values: the parts of Spark's analysed plan that ``query_facts`` needs.

Columns are identified by numbers, Spark's expression ids, which stay the same while a column passes from node to node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTable:
    """A stream that a query reads. ``columns`` are the numbers of its columns by name.

    ``kind_column`` contains the row kinds (None: rows are only added), ``position_column`` the order of rows.
    ``normalize`` is the setting of the read (None: not set); ``is_complete``: changes have their pre-images in any
    case. ``is_whole``: no micro-batch contains a part of a commit, unless commits can't be distinguished.
    ``moves_keys``: a key may move between partitions. ``is_foreign``: a stream of another connector, of which only the
    columns are known. ``leaves_out``: its deletions may have nothing but the values of ``primary_keys``.
    """

    name: str
    columns: Mapping[str, int]
    primary_keys: tuple[str, ...] = ()
    kind_column: str | None = None
    position_column: str | None = None
    normalize: str | None = None
    is_complete: bool = False
    is_eventual: bool = False
    is_foreign: bool = False
    leaves_out: bool = False
    is_whole: bool = True
    moves_keys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTable:
    """A table that a query reads as a whole. ``is_pinned``: it has the same rows in every micro-batch.

    ``is_frozen``: its snapshot was the newest when the data frame was made, and is another one after a restart.
    """

    name: str
    is_pinned: bool = False
    is_frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An expression. ``same_as``: it is this column, possibly cast without loss; None: it is computed.

    ``reads`` are the columns that it uses. ``is_stable``: it has the same value whenever it is computed for the same
    row. ``tables`` are the tables of its sub-queries.
    """

    reads: frozenset[int] = frozenset()
    same_as: int | None = None
    is_stable: bool = True
    tables: tuple[FixedTable, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Leaf: changes of one table."""

    table: StreamTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Leaf: rows of a table or other batch source, with these columns."""

    table: FixedTable
    columns: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Projection of each row to these columns, by number."""

    child: Node
    columns: Mapping[int, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Filter: passes the rows that meet a condition."""

    child: Node
    condition: Value


class JoinKind(StrEnum):
    """How a join treats rows without a match."""

    INNER = "INNER"
    LEFT = "LEFT OUTER"
    RIGHT = "RIGHT OUTER"
    FULL = "FULL OUTER"
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"
    CROSS = "CROSS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Join of two inputs. ``broadcasts_left`` and ``broadcasts_right``: a hint requests a broadcast of that side."""

    left: Node
    right: Node
    kind: JoinKind
    condition: Value = field(default_factory=Value)
    broadcasts_left: bool = False
    broadcasts_right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """Union of all inputs. ``columns``: output column -> the corresponding column of each input, in input order."""

    children: tuple[Node, ...]
    columns: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffle:
    """Redistribution of the same rows over the tasks."""

    child: Node
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    """Expansion of each row into any number of rows with additional columns. ``may_drop``: the number may be zero."""

    child: Node
    columns: Mapping[int, Value]
    may_drop: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """An operation that is not analysed, such as a user function over whole batches or an aggregation.

    ``combines``: each output row is computed from several input rows, so it is not a change of the input.
    ``is_function``: user code, which sees the row kinds and decides how to use them.
    """

    children: tuple[Node, ...]
    what: str
    combines: bool = False
    is_function: bool = False
    columns: frozenset[int] = frozenset()


Node: TypeAlias = Stream | Fixed | Project | Filter | Join | Union | Shuffle | Expand | Opaque
