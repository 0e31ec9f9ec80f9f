"""Interface of a table that a query reads, for refreshes: its columns, its states, and the change between two states.

A state has a number, and numbers grow from commit to commit: the id of a snapshot of a dynamic table, or a number of
another format's. Number 0 is the table without rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from storage_lib.materialized.sources.source_positions import SourcePosition
    from storage_lib.schema.table_schema import TableSchema

Lineage = Mapping[str, int]
"""Numbers of a state's direct and indirect sources, by ``Source.key``, itself included."""


class SourceDelta(ABC):
    """Net changes of some columns of a source between two of its states.

    ``here`` are the rows with ``_weight``, if they are few; otherwise an engine reads them. ``row_count`` counts the
    rows; for changes that an engine reads, it is the number of stored rows to read. 0: the source has not changed.
    """

    row_count: int
    here: pa.Table | None


class Source(ABC):
    """A table that a query reads."""

    @property
    @abstractmethod
    def schema(self) -> TableSchema:
        """The columns of today, and the primary key."""

    @property
    @abstractmethod
    def key(self) -> str:
        """The name under which the positions of this very table are stored; a recreated table has another one."""

    @abstractmethod
    def newest(self) -> int:
        """Return the number of the newest state (0: the table without rows)."""

    @abstractmethod
    def position(self, number: int) -> SourcePosition:
        """Return the position of a state. Raises ``SnapshotExpiredError`` or ``NotFoundError`` if it is gone."""

    @abstractmethod
    def watermark(self, number: int) -> int | None:
        """Return the event time, in epoch milliseconds, up to which a state is complete; None if it is not known."""

    @abstractmethod
    def named(self, number: int) -> str:
        """Return a state in words, such as ``snapshot 7``."""

    @abstractmethod
    def behind_since(self, reached: int, newest: int) -> int:
        """Return the time (epoch milliseconds) of the first commit after ``reached``; 0 if it is not known."""

    @abstractmethod
    def row_count(self, number: int) -> int:
        """Return the number of rows in the files of a state, before versions are merged; 0 if it is not known."""

    @abstractmethod
    def changed_row_count(self, before: int, after: int) -> int:
        """Return about how many rows changed; raises as ``position``."""

    @abstractmethod
    def lineage(self, number: int) -> Lineage:
        """Return the states from which a state was computed, and itself. Raises as ``position``."""

    @abstractmethod
    def agreeing_with(self, key: str, number: int, newest: int, oldest: int) -> tuple[int, Lineage] | None:
        """Return the newest state before ``newest``, not before ``oldest``, that holds table ``key`` at ``number``.

        None if there is none, or it has expired.
        """

    @abstractmethod
    def why_full(self, name: str, columns: Sequence[str], recorded: SourcePosition | None, newest: int) -> str | None:
        """Return why the changes of ``columns`` from ``recorded`` to ``newest`` are not known; None if they are."""

    @abstractmethod
    def delta(self, columns: Sequence[str], before: int, after: int) -> SourceDelta:
        """Return the changes of ``columns`` between two states.

        Raises ``SnapshotExpiredError`` or ``NotFoundError`` for a state that is gone, or a file of it.
        """
