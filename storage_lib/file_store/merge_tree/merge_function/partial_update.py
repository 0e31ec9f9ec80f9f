"""``merge-engine=partial-update``: each column keeps the newest value that is not null.

Columns of a sequence group are updated together, by the row with the greatest sequence of that group, nulls included;
a row whose sequence is all null does not update the group, unless it is the only version of its key. An aggregated
column of a group reads the group's rows in the order of their sequences; only ``collect``, as in Paimon, in the order
of their arrival.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.aggregate_function.chosen_value import LastNonNullValue, LastValue
from storage_lib.file_store.merge_tree.aggregate_function.collected_value import Collect
from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import (
    FieldAggregator,
    IgnoreRetract,
    MergedField,
)
from storage_lib.file_store.merge_tree.aggregate_function.field_versions import FieldVersions
from storage_lib.file_store.merge_tree.merge_function.aggregation import refuse_what_cannot_be_taken_back
from storage_lib.file_store.merge_tree.merge_function.column_by_column import ColumnByColumn
from storage_lib.file_store.merge_tree.merge_function.group_removal import Flags, GroupRemoval, Positions
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.file_store.merge_tree.merge_function.merged_rows import MergedRows, field_versions
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.schema.options.field_options import SequenceGroup
from storage_lib.schema.types.row_kind import RowKind

_UNGROUPED = IgnoreRetract(aggregator=LastNonNullValue())
_GROUPED = LastValue()


@dataclass(frozen=True, kw_only=True)
class PartialUpdate(ColumnByColumn):
    """``columns`` are all except those of the key and of ``order``.

    ``removing`` are those of the ``groups`` whose deletions remove the whole record.
    """

    columns: frozenset[str]
    groups: tuple[SequenceGroup, ...] = ()
    removing: tuple[SequenceGroup, ...] = ()

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return these columns, those of the order, and the sequences of their groups."""
        sequences = {
            name
            for group in self.groups
            if group in self.removing or not wanted.isdisjoint((*group.fields, *group.members))
            for name in group.fields
        }
        return wanted | sequences | frozenset(self.order.fields)

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """Lift the columns; retract rows need sequence groups or removal of records, else they are refused."""
        taken = retracts(kinds)
        if taken.any():
            if self.removes_on_delete:
                # The pre-image of an update removes nothing: the update itself overwrites it.
                is_merged = pa.array(kinds.to_numpy() != RowKind.UPDATE_BEFORE)
                rows, kinds = rows.filter(is_merged), kinds.filter(is_merged)
            elif self.groups:
                refuse_what_cannot_be_taken_back(self.table, self.aggregators, rows.filter(pa.array(taken)))
            else:
                message = (
                    f"table {self.table}: merge-engine=partial-update can't take rows back, but the input has rows of "
                    "kind -U or -D. Leave them out, or create the table with ignore-delete=true to pass over them, "
                    "with partial-update.remove-record-on-delete=true to remove whole rows, or with sequence groups"
                )
                raise InvalidInputError(message)
        return self._lifted_columns(rows), kinds

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:
        """Merge each column, after removing records by deletions of groups."""
        if not self.removing or versions.retracts is None:
            return super().merge(versions, final=final)
        removal = GroupRemoval(versions=versions, groups=self.removing)
        if final:
            based, bases = removal.based()
            return self._merged(based, final=True, bases=bases, unmerged=versions).standing()
        return removal.with_deletions(self._merged(removal.after(), final=False, unmerged=versions).merged())

    def below(self, versions: Versions) -> pa.RecordBatch | None:
        """Return deletions followed by new rows, or values that were retracted before they were added."""
        if not self.removing or versions.retracts is None:
            return super().below(versions)
        return GroupRemoval(versions=versions, groups=self.removing).below()

    def _merged(
        self, versions: Versions, *, final: bool, bases: Flags | None = None, unmerged: Versions | None = None
    ) -> MergedRows:
        """Merge all columns. ``unmerged`` has the same keys with all of their versions; None: ``versions`` has all."""
        fields: dict[str, MergedField] = {}
        counts = _only_versions(unmerged or versions, versions)
        if bases is not None:
            counts |= bases
        names = self.columns.intersection(versions.rows.schema.names)
        for group in self.groups:
            if names.issuperset(group.fields):
                rows = _in_sequence(versions, group.fields, counts)
                members = names.intersection(group.members)
                fields |= self._merged_group(versions, rows, group, members, final=final)
        for name in names.difference(fields):
            fields[name] = self.aggregators.get(name, _UNGROUPED).merge(field_versions(versions, name), final=final)
        return MergedRows(versions=versions, fields=fields, newest=frozenset(self.order.fields), required=self.required)

    def _merged_group(
        self, versions: Versions, rows: Positions, group: SequenceGroup, members: frozenset[str], *, final: bool
    ) -> dict[str, MergedField]:
        number = versions.group_of_row[rows]
        starts = np.flatnonzero(np.append(True, number[1:] != number[:-1])) if len(rows) else rows

        def of(name: str) -> FieldVersions:
            # Sorting by position keeps the rows of a key together, oldest first.
            chosen = np.sort(rows) if _collects(self.aggregators.get(name)) else rows
            return FieldVersions(
                values=versions.rows.column(name).take(pa.array(chosen)),
                starts=starts,
                numbers=number[starts],
                count=len(versions.starts),
                retracts=None if versions.retracts is None else versions.retracts[chosen],
            )

        merged = {name: self.aggregators.get(name, _GROUPED).merge(of(name), final=final) for name in sorted(members)}
        columns_below = [each.below for each in merged.values() if each.below is not None]
        for name in group.fields:
            sequence = of(name)
            newest = sequence.picked(sequence.lasts)
            below = None
            if columns_below:
                # A row below changes the group, so it needs a sequence: the oldest one.
                has_row_below = np.logical_or.reduce(
                    [each.is_valid().to_numpy(zero_copy_only=False) for each in columns_below]
                )
                oldest = sequence.picked(sequence.starts)
                below = pc.if_else(pa.array(has_row_below), oldest, pa.scalar(None, oldest.type))
            merged[name] = MergedField(state=newest, below=below, alone=newest)
        return merged


def _collects(aggregator: FieldAggregator | None) -> bool:
    inner = aggregator.aggregator if isinstance(aggregator, IgnoreRetract) else aggregator
    return isinstance(inner, Collect)


def _only_versions(unmerged: Versions, versions: Versions) -> Flags:
    """Return which rows of ``versions`` are additions and the only version of their key in ``unmerged``.

    Paimon keeps these unchanged.
    """
    is_only = unmerged.ends - unmerged.starts == 1
    if unmerged.retracts is not None:
        is_only &= ~unmerged.retracts[unmerged.starts]
    return np.repeat(is_only, versions.ends - versions.starts)


def _in_sequence(versions: Versions, fields: tuple[str, ...], counts: Flags) -> Positions:
    """Return the rows that have a sequence or are marked in ``counts``, by key and ascending sequence.

    Rows of equal sequence keep their order, older rows first.
    """
    columns = [versions.rows.column(name) for name in fields]
    has_one = np.logical_or.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
    has_one |= counts
    frame = pl.DataFrame(
        {"key": versions.group_of_row} | {str(place): pl.from_arrow(column) for place, column in enumerate(columns)}
    )
    ordered = (
        frame.with_row_index("row")
        .filter(pl.Series(has_one))
        .sort(list(frame.columns), nulls_last=False, maintain_order=True)
    )
    return ordered["row"].to_numpy().astype(np.int64)
