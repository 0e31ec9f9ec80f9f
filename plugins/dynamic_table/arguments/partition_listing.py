"""Partitions of an existing table: those before a value, and the filter that reads one of them."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from dynamic_table.arguments.partition_argument import (
    checked_partition,
    checked_partitions,
    partition_label,
    partition_text,
)
from dynamic_table.arguments.rendered_argument import is_nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from storage_lib import DynamicTable
    from storage_lib.schema.filter.predicate import Predicate

__all__ = [
    "check_partitioned_by",
    "partition_filter",
    "partitions_before",
    "partitions_of",
    "partitions_to_drop",
    "refuse_missing",
    "stored_row_count",
]


def partitions_to_drop(table: DynamicTable, partitions: object, before: object) -> Sequence[Mapping[str, str | None]]:
    """Return the given partitions, or those before a value, ``{column: value}``.

    Raises InvalidInputError if neither is given, and for an empty list: falling back to ``before`` would drop
    partitions that the caller did not ask for.
    """
    from storage_lib.errors import InvalidInputError

    if not is_nothing(partitions) or not before:
        return checked_partitions(partitions)
    limit = checked_partition(before)
    if len(limit) > 1:
        message = f"before is {limit}; it has to be one partition column and a value: smaller values are dropped."
        raise InvalidInputError(message)
    [(column, value)] = limit.items()
    return partitions_before(table, column, value)


def partitions_before(table: DynamicTable, column: str, limit: str) -> list[dict[str, str | None]]:
    """Return the partitions whose ``column`` is smaller than ``limit``, compared as the column's type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from storage_lib.schema.filter.literal import typed_literal

    names = list(table.schema.partition_keys)
    check_partitioned_by(table, [column])
    field = table.schema.field(column)
    bound = pa.scalar(typed_literal(limit, field), field.type.arrow)
    found = table.inspect.partition_values()
    chosen = found.filter(pc.less(found[column], bound)).sort_by(column)
    return [
        {name: None if row[name] is None else partition_text(row[name]) for name in names} for row in chosen.to_pylist()
    ]


def partitions_of(table: DynamicTable, snapshot_id: int) -> list[dict[str, str | None]]:
    """Return the partitions that a commit changed; none if its snapshot has expired."""
    return [
        {name: None if value is None else partition_text(value) for name, value in partition.items()}
        for commit in table.inspect.commits(after=snapshot_id - 1, limit=1)
        if commit.snapshot_id == snapshot_id
        for partition in commit.partitions
    ]


def refuse_missing(table: DynamicTable, partitions: Iterable[Mapping[str, str | None]]) -> None:
    """Raise NotFoundError if one of the partitions is missing from the table."""
    from storage_lib.errors import NotFoundError

    for partition in partitions:
        if not table.new_read(filter=partition_filter(table, partition)).plan().splits():
            message = f"{table.name} has no partition {partition_label([partition])}; it may have been dropped already."
            raise NotFoundError(message)


def stored_row_count(table: DynamicTable, partition: Mapping[str, str]) -> int:
    """Return the number of rows in a partition's files, before versions of a key are merged; 0 if it is missing."""
    from storage_lib.errors import NotFoundError

    try:
        return int(table.describe(partition)["rows (physical)"])
    except NotFoundError:
        return 0


def partition_filter(table: DynamicTable, partition: Mapping[str, str | None]) -> Predicate:
    """Return the predicate that matches the partition's rows; the table parses the text as its columns' types."""
    from storage_lib import col

    check_partitioned_by(table, partition)
    return reduce(
        and_, [col(column).is_null() if value is None else col(column) == value for column, value in partition.items()]
    )


def check_partitioned_by(table: DynamicTable, columns: Iterable[str]) -> None:
    """Raise InvalidInputError unless all ``columns`` are partition columns of the table."""
    from storage_lib.errors import InvalidInputError

    names = list(table.schema.partition_keys)
    for column in columns:
        if column not in names:
            raise InvalidInputError(f"{table.name} is partitioned by {names}, not by {column!r}.")
