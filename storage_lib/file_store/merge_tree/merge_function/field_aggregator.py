"""Aggregation of one column when versions of a key are merged. One aggregator per aggregate function.

A merged column has up to three faces, since a merge that is not final has to hand on what was taken back too:

    state   the column of the merged row, where any version added something
    below   what must be in an older row below it, since the state can't tell it: a value that was taken back although
            it is not among these versions. Null: nothing
    alone   the column of a row that only takes back, where no version added anything
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.field_versions import FieldVersions


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedField:
    """One value for each key. ``below`` is None if nothing ever has to be, ``alone`` if it is the same as ``below``.

    ``neutral`` stands for nothing in a column that is NOT NULL; without it any version's value does.
    """

    state: pa.Array
    below: pa.Array | None = None
    alone: pa.Array | None = None
    neutral: object = None


class FieldAggregator(Protocol):
    """Frozen, picklable; knows its column's type."""

    @property
    def name(self) -> str:
        """The aggregate function, as options spell it."""

    @property
    def takes_back(self) -> bool:
        """Whether ``-U`` and ``-D`` are defined for it."""

    def lifted(self, values: pa.Array) -> pa.Array:
        """Values as a writer got them, as states."""

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:
        """The column of each key. ``final``: nothing older is left. Raises ``InvalidInputError`` on overflow."""


@dataclass(frozen=True, kw_only=True)
class IgnoreRetract:
    """``fields.<f>.ignore-retract``: rows that take back leave this column as it is."""

    aggregator: FieldAggregator

    @property
    def name(self) -> str:
        """The same."""
        return self.aggregator.name

    @property
    def takes_back(self) -> bool:
        """By doing nothing."""
        return True

    def lifted(self, values: pa.Array) -> pa.Array:
        """The same."""
        return self.aggregator.lifted(values)

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:
        """Of what was added."""
        return self.aggregator.merge(versions.without_retracts(), final=final)
