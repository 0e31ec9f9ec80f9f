"""A reader of a table's stream: it continues from its position in a new process each time, and keeps the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from storage_lib import DynamicTable, StreamPosition
from tests.game.model import Row

_Key: TypeAlias = tuple[Any, ...]


class ContradictionError(AssertionError):
    """A change contradicts those before it."""


@dataclass
class Follower:
    """``key``: ids of the key's columns. ``state_directory``: where ``normalize="state"`` keeps the stream's rows.

    ``is_exact``: each retraction carries the row that was added last. ``is_behind``: it lacks a commit without change
    tracking, so its rows differ from the table's, and only its own changes can contradict each other.
    """

    key: tuple[int, ...]
    normalize: str | None
    is_exact: bool
    state_directory: str | None
    row_kind: str
    position: StreamPosition | None = None
    is_behind: bool = False
    _by_key: dict[_Key, Row] = field(default_factory=dict)
    _bag: Counter[tuple[tuple[int, Any], ...]] = field(default_factory=Counter)

    @property
    def outlives_untracked_commits(self) -> bool:
        """Whether its changes stay complete, because it completes them from the rows that it has read."""
        return self.state_directory is not None

    def read_on(self, table: DynamicTable, *, crashes: bool) -> None:
        """Read what is new. ``crashes``: another process reads it first and fails before it keeps the position.

        Raises ``ContradictionError``.
        """
        if crashes:
            unkept = self._source(table).poll()
            again = self._source(table).poll()
            if _listed(unkept) != _listed(again):
                message = f"read {_listed(unkept)} first, and {_listed(again)} from the same position"
                raise ContradictionError(message)
        source = self._source(table)
        while (batch := source.poll()) is not None:
            self._take_all(table, batch)
        self.position = source.position

    def rows(self) -> Iterable[Row]:
        return self._by_key.values() if self.key else map(dict, self._bag.elements())

    def alter(self, dropped: set[int], added: set[int]) -> None:
        """Drop columns by their ids, and add others, which are null."""

        def altered(row: Row) -> Row:
            return {column: value for column, value in row.items() if column not in dropped} | dict.fromkeys(added)

        self._by_key = {key: altered(row) for key, row in self._by_key.items()}
        bag, self._bag = self._bag, Counter()
        for row, count in bag.items():
            self._bag[tuple(sorted(altered(dict(row)).items()))] += count

    def _source(self, table: DynamicTable) -> Any:
        return table.stream(position=self.position, normalize=self.normalize, state_directory=self.state_directory)

    def _take_all(self, table: DynamicTable, batch: pa.Table) -> None:
        ids = {each.name: each.id for each in table.schema.fields}
        for row in batch.to_pylist():
            kind = row.pop(self.row_kind, "+I")
            self._take(kind, {ids[name]: value for name, value in row.items()})

    def _take(self, kind: str, row: Row) -> None:
        adds = kind in ("+I", "+U")
        if not self.key:
            counted = tuple(sorted(row.items()))
            self._bag[counted] += 1 if adds else -1
            self._refuse(self._bag[counted] < 0, kind, row, None)
            return
        key = tuple(row[column] for column in self.key)
        there = self._by_key.pop(key, None)
        if self.is_exact:
            self._refuse(there != (None if adds else row), kind, row, there)
        if adds:
            self._by_key[key] = row

    def _refuse(self, contradicts: bool, kind: str, row: Row, there: Row | None) -> None:  # noqa: FBT001  private
        if contradicts:
            message = f"{kind} {row}, but there is {there}"
            raise ContradictionError(message)


def _listed(changes: pa.Table | None) -> list[str]:
    return [] if changes is None else [str(list(row.values())) for row in changes.to_pylist()]
