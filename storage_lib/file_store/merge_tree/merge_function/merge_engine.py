"""Create a table's merge function from its options, or explain why they are invalid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.aggregate_function.aggregators import LAST_NON_NULL_VALUE, aggregator_of
from storage_lib.file_store.merge_tree.aggregate_function.chosen_value import LastValue
from storage_lib.file_store.merge_tree.aggregate_function.combined_value import Count, Product, Sum
from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import FieldAggregator, IgnoreRetract
from storage_lib.file_store.merge_tree.merge_function.aggregation import Aggregation
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE, Deduplicate
from storage_lib.file_store.merge_tree.merge_function.first_row import FirstRow
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.partial_update import PartialUpdate
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.schema.options.field_options import DEFAULT_FUNCTION, FieldOptions, SequenceGroup
from storage_lib.schema.options.table_options import MergeEngine, SortOrder, TableOptions
from storage_lib.schema.table_schema import DataField, TableSchema
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.schema.types.nested_types import is_nested

_UNORDERED = (TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.BOOLEAN)


def merge_function_of(table: str, schema: TableSchema, options: TableOptions) -> MergeFunction:
    """Create the merge function of this table; ``table`` is its name in messages.

    Raises ``InvalidInputError`` naming the option, the column and the remedy.
    """
    if not schema.primary_keys:
        return DEDUPLICATE
    return _Engine(table=table, schema=schema, options=options, fields=FieldOptions.parse(options.others)).function()


@dataclass(frozen=True, kw_only=True)
class _Engine:
    table: str
    schema: TableSchema
    options: TableOptions
    fields: FieldOptions

    def function(self) -> MergeFunction:
        for column, key in self.fields.keys_by_column.items():
            self._column(key, column)
        order = self._order()
        self._check_retained_deletes()
        match self.options.merge_engine:
            case MergeEngine.DEDUPLICATE:
                return Deduplicate(order=order) if order.fields else DEDUPLICATE
            case MergeEngine.FIRST_ROW:
                if order.fields:
                    raise self._refused(
                        "sequence.field",
                        "is set, but merge-engine=first-row keeps the row that arrived first; leave one of them out",
                    )
                return FirstRow(table=self.table)
            case MergeEngine.AGGREGATION:
                return self._aggregation(order)
            case MergeEngine.PARTIAL_UPDATE:
                return self._partial_update(order)
            case MergeEngine.VALUE_COUNT:
                raise self._refused("merge-engine", "is value-count, which is for tables without a primary key")

    def _order(self) -> SequenceOrder:
        for name in self.options.sequence_field:
            self._sequence_column("sequence.field", name)
        return SequenceOrder(
            fields=self.options.sequence_field,
            descending=self.options.sequence_field_sort_order is SortOrder.DESCENDING,
        )

    def _check_retained_deletes(self) -> None:
        option = "compaction.keep-deletes"
        if not self.options.compaction_keep_deletes:
            return
        if self.options.merge_engine is not MergeEngine.DEDUPLICATE or not self.options.sequence_field:
            raise self._refused(
                option, "is for merge-engine=deduplicate with sequence.field: only there a late row may be older"
            )
        if self.options.compacts_at_commit:
            raise self._refused(
                option,
                "does not go with deletion vectors, force-lookup, and changelog-producer=lookup or full-compaction, "
                "which read compacted files as current rows; leave one of them out",
            )

    def _aggregation(self, order: SequenceOrder) -> Aggregation:
        if self.fields.sequence_groups:
            raise self._refused(
                self.fields.sequence_groups[0].option,
                "is for merge-engine=partial-update; an aggregation table has sequence.field",
            )
        aggregators = {
            column.name: aggregator_of(
                self.table, column, self.fields.function_of(column.name) or LAST_NON_NULL_VALUE, self.fields
            )
            for column in self._columns(order)
        }
        removes = self.options.aggregation_remove_record_on_delete
        products = [name for name, each in aggregators.items() if isinstance(each, Product)]
        if removes and products:
            raise self._refused(
                "aggregation.remove-record-on-delete",
                f"is not supported with a product (column {products[0]!r}): retractions from a recreated record can't "
                f"be distinguished from those of the old one. Set fields.{products[0]}.ignore-retract",
            )
        return Aggregation(
            table=self.table,
            aggregators=aggregators,
            required=self._required,
            order=order,
            removes_on_delete=removes,
        )

    def _partial_update(self, order: SequenceOrder) -> PartialUpdate:
        groups = self.fields.sequence_groups
        if groups and self.options.partial_update_remove_record_on_delete:
            raise self._refused(
                "partial-update.remove-record-on-delete",
                f"removes rows that {groups[0].option} would only take columns out of; leave one of them out",
            )
        self._check_groups()
        aggregators = self._group_aggregators(order)
        return PartialUpdate(
            table=self.table,
            columns=frozenset(column.name for column in self._columns(order)),
            required=self._required,
            groups=groups,
            removing=self._removing_groups(aggregators),
            aggregators=aggregators,
            order=order,
            removes_on_delete=self.options.partial_update_remove_record_on_delete,
        )

    def _removing_groups(self, aggregators: Mapping[str, FieldAggregator]) -> tuple[SequenceGroup, ...]:
        named = self.options.partial_update_remove_record_on_sequence_group
        option = "partial-update.remove-record-on-sequence-group"
        sequences = {name for group in self.fields.sequence_groups for name in group.fields}
        for name in named:
            if name not in sequences:
                raise self._refused(
                    option,
                    f"names {name!r}, which is not the sequence of a group; declare fields.{name}.sequence-group, or "
                    f"name one of {', '.join(sorted(sequences)) or 'the existing ones'}",
                )
        if named and self.options.ignore_delete:
            raise self._refused(option, "asks for deletions that ignore-delete passes over; leave one of them out")
        for name, each in aggregators.items():
            if named and each.takes_back and not isinstance(each, Sum | Count | LastValue | IgnoreRetract):
                raise self._refused(
                    option,
                    f"is not supported with {each.name} of column {name!r}: retractions from a recreated record can't "
                    f"be distinguished from those of the old one. Set fields.{name}.ignore-retract",
                )
        return tuple(group for group in self.fields.sequence_groups if not set(named).isdisjoint(group.fields))

    def _group_aggregators(self, order: SequenceOrder) -> Mapping[str, FieldAggregator]:
        sequences = {name for group in self.fields.sequence_groups for name in group.fields}
        members = {name for group in self.fields.sequence_groups for name in group.members}
        aggregators = {}
        for column in self._columns(order):
            function = self.fields.function_of(column.name)
            if column.name in sequences:
                if column.name in self.fields.functions:
                    raise self._refused(
                        f"fields.{column.name}.aggregate-function",
                        "is about the sequence of a group, which is never aggregated; leave it out",
                    )
            elif function is not None and column.name in members:
                aggregators[column.name] = aggregator_of(self.table, column, function, self.fields)
            elif function not in (None, LAST_NON_NULL_VALUE):
                raise self._refused(
                    f"fields.{column.name}.aggregate-function"
                    if column.name in self.fields.functions
                    else DEFAULT_FUNCTION,
                    f"is {function}, but column {column.name!r} is in no sequence group, so retracted rows "
                    "could not be identified; put it into one (fields.<sequence>.sequence-group), or use "
                    f"{LAST_NON_NULL_VALUE}, or merge-engine=aggregation",
                )
        return aggregators

    def _check_groups(self) -> None:
        seen: dict[str, str] = {}
        for group in self.fields.sequence_groups:
            for name in group.fields:
                self._sequence_column(group.option, name)
            for name in (*group.fields, *group.members):
                if name in self.schema.primary_keys:
                    raise self._refused(group.option, f"names {name!r}, which is in the primary key; leave it out")
                if name in self.options.sequence_field:
                    raise self._refused(group.option, f"names {name!r}, which is a sequence.field; leave it out of one")
                if name in seen:
                    raise self._refused(
                        group.option, f"names {name!r}, which {seen[name]} names too; a column can be in one group only"
                    )
                seen[name] = group.option

    def _columns(self, order: SequenceOrder) -> list[DataField]:
        """Return the columns to merge; the others are equal in all versions, or order them."""
        names = {*self.schema.primary_keys, *order.fields}
        for name in self.fields.functions:
            if name in names:
                role = "in the primary key" if name in self.schema.primary_keys else "a sequence.field"
                raise self._refused(
                    f"fields.{name}.aggregate-function",
                    f"is about column {name!r}, which is {role} and never aggregated; leave it out",
                )
        return [column for column in self.schema.fields if column.name not in names]

    @property
    def _required(self) -> frozenset[str]:
        return frozenset(column.name for column in self.schema.fields if not column.type.nullable)

    def _column(self, option: str, name: str) -> DataField:
        for column in self.schema.fields:
            if column.name == name:
                return column
        names = ", ".join(column.name for column in self.schema.fields)
        raise self._refused(option, f"names {name!r}, which is not a column; the columns are {names}")

    def _sequence_column(self, option: str, name: str) -> None:
        column = self._column(option, name)
        if name in self.schema.primary_keys:
            raise self._refused(
                option,
                f"names {name!r}, which is in the primary key ({', '.join(self.schema.primary_keys)}), so all versions "
                "of a row have the same; name a column that tells them apart",
            )
        if column.type.root in _UNORDERED or is_nested(column.type):
            raise self._refused(
                option, f"names {name!r}, a {column.type}, which can't be a sequence; name a number, a text or a time"
            )

    def _refused(self, option: str, reason: str) -> InvalidInputError:
        return InvalidInputError(f"table {self.table}: option {option} {reason}")
