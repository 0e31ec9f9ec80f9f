"""Partitions of a table that is there: which lie before a value, and the filter that reads one of them."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib import DynamicTable
    from storage_lib.schema.predicate import Predicate

__all__ = ["partition_filter", "partitions_before"]


def partitions_before(
    table: DynamicTable, column: str, limit: str
) -> list[dict[str, str]]:
    """Return the partitions whose ``column`` is smaller than ``limit``, compared as the column's type."""
    import pyarrow.compute as pc

    bound = _typed(table, column, limit)
    names = list(table.schema.partition_keys)
    found = table.partitions().select(names)
    chosen = found.filter(pc.less(found[column], bound)).sort_by(column)
    return [{name: str(row[name]) for name in names} for row in chosen.to_pylist()]


def partition_filter(table: DynamicTable, partition: Mapping[str, str]) -> Predicate:
    """Return the predicate that holds for the partition's rows only."""
    from storage_lib import col

    terms = [
        col(column) == _typed(table, column, value).as_py()
        for column, value in partition.items()
    ]
    return reduce(and_, terms)


def _typed(table: DynamicTable, column: str, text: str) -> Any:  # noqa: ANN401  an Arrow scalar
    """Return the text as a value of the partition column; an InvalidInputError says why it is none."""
    import pyarrow as pa

    from storage_lib.errors import InvalidInputError

    if column not in table.schema.partition_keys:
        message = f"{table.name} is partitioned by {list(table.schema.partition_keys)}, not by {column!r}."
        raise InvalidInputError(message)
    kind = table.arrow_schema.field(column).type
    try:
        return pa.scalar(text).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as wrong:
        message = f"{text!r} is not a value of {table.name}'s partition column {column!r} ({kind})."
        raise InvalidInputError(message) from wrong
