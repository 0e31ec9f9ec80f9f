"""A streaming query as a tree of plain values: what deciding about it needs to know of Spark's analysed plan.

Columns are identified by Spark's numbers, which stay the same from node to node while a column is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTable:
    """A stream that a query reads. ``columns`` are the numbers of its columns by name.

    ``kind_column`` is the one that tells what each row means (None: rows are only ever added), ``position_column`` the
    one that tells their order. ``normalize`` is what the read says (None: nothing); ``is_complete``: the changes come
    with the rows before them whatever it says. ``is_whole``: no micro-batch holds a part of a commit, unless commits
    can't be distinguished. ``moves_keys``: a key may go from one partition to another. ``is_foreign``: a table of
    another connector, of which only the columns are known.
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
    is_whole: bool = True
    moves_keys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTable:
    """A table that a query reads as a whole. ``is_pinned``: it is known to have the same rows in every micro-batch."""

    name: str
    is_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An expression. ``same_as``: it is this column, at most in another type that tells as much.

    ``is_stable``: of the same row it has the same value whenever it is computed. ``tables`` are those of sub-queries.
    """

    reads: frozenset[int] = frozenset()
    same_as: int | None = None
    is_stable: bool = True
    tables: tuple[FixedTable, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A leaf: changes of one table."""

    table: StreamTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A leaf: rows that are there from the start, with these columns."""

    table: FixedTable
    columns: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Each row becomes one of these columns, by number."""

    child: Node
    columns: Mapping[int, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Rows that meet a condition go on."""

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
    """Two inputs side by side. The sides that a hint orders to be broadcast are said."""

    left: Node
    right: Node
    kind: JoinKind
    condition: Value = field(default_factory=Value)
    broadcasts_left: bool = False
    broadcasts_right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """The rows of all inputs. ``columns``: for each number of the output those of the inputs, in their order."""

    children: tuple[Node, ...]
    columns: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffle:
    """The same rows, spread otherwise over the tasks."""

    child: Node
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    """Each row becomes any number of rows, which have these columns in addition to its own."""

    child: Node
    columns: Mapping[int, Value]
    may_drop: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """An operation that only Spark understands: a user's function over whole batches, or results of several rows.

    ``combines``: its rows are computed from several each, so they are not changes of its input. ``is_function``: the
    user's own code sees the kinds of the rows, and decides how to use them.
    """

    children: tuple[Node, ...]
    what: str
    combines: bool = False
    is_function: bool = False
    columns: frozenset[int] = frozenset()


Node: TypeAlias = Stream | Fixed | Project | Filter | Join | Union | Shuffle | Expand | Opaque
