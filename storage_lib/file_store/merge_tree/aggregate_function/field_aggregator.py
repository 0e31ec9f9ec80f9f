"""Aggregation of one column when versions of a key are merged. One aggregator per aggregate function.

A merged column has up to three parts, since a merge that is not final has to pass on retractions:

    state   the column of the merged row, if any version is an addition
    below   the value of an older row below it, which the state can't express: a retracted value that
            is not among these versions. Null: none
    alone   the column of a retract row, if no version is an addition
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from storage_lib.file_store.merge_tree.aggregate_function.field_versions import FieldVersions


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedField:
    """One value for each key. ``below`` is None if never needed, ``alone`` if it equals ``below``.

    ``neutral`` replaces null in a NOT NULL column; without it, any version's value does.
    """

    state: pa.Array
    below: pa.Array | None = None
    alone: pa.Array | None = None
    neutral: object = None


class FieldAggregator(Protocol):
    """Frozen, picklable; created for one column type."""

    @property
    def name(self) -> str:
        """Name of the aggregate function in options."""

    @property
    def takes_back(self) -> bool:
        """Whether the function supports ``-U`` and ``-D``."""

    def lifted(self, values: pa.Array) -> pa.Array:
        """Convert input values to states."""

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:
        """Merge each key's values. ``final``: nothing older exists. Raises ``InvalidInputError`` on overflow."""


@dataclass(frozen=True, kw_only=True)
class IgnoreRetract:
    """``fields.<f>.ignore-retract``: retract rows leave this column unchanged."""

    aggregator: FieldAggregator

    @property
    def name(self) -> str:
        """Name of the inner aggregator."""
        return self.aggregator.name

    @property
    def takes_back(self) -> bool:
        """Return True: retractions are ignored."""
        return True

    def lifted(self, values: pa.Array) -> pa.Array:
        """Lift with the inner aggregator."""
        return self.aggregator.lifted(values)

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:
        """Merge the added values only."""
        return self.aggregator.merge(versions.without_retracts(), final=final)
