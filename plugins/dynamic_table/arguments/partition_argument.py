"""Partitions as operators' arguments: checks of the rendered values before they reach a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import REMEDY

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["checked_partition", "checked_partitions", "partition_label", "partition_text"]

# Texts to which a template renders if the run has no partition key, date or parameter of that name.
EMPTY_VALUES = frozenset({"", "none", "null", "nan", "undefined"})


def checked_partition(partition: object) -> dict[str, str]:
    """Return ``{column: value as text}``; raises InvalidInputError for empty values and undefined template values."""
    from storage_lib.errors import InvalidInputError

    if not isinstance(partition, Mapping) or not partition:
        message = f"A partition is a mapping like {{'dt': '2024-05-14'}}, not {partition!r}. {REMEDY}"
        raise InvalidInputError(message)
    for column, value in partition.items():
        if str(value).strip().lower() in EMPTY_VALUES:
            message = (
                f"Partition column {column!r} has the value {value!r}: this run has no partition key or parameter "
                "for it. Trigger it with one, or give the partition in the form."
            )
            raise InvalidInputError(message)
    return {str(column): partition_text(value) for column, value in partition.items()}


def checked_partitions(partitions: object) -> list[dict[str, str]]:
    """Return the checked partitions; raises InvalidInputError for an empty list, which would silently do nothing."""
    from storage_lib.errors import InvalidInputError

    if isinstance(partitions, Mapping):
        return [checked_partition(partitions)]
    if not isinstance(partitions, list | tuple) or not partitions:
        message = f"Partitions are a list of mappings like [{{'dt': '2024-05-14'}}], not {partitions!r}. {REMEDY}"
        raise InvalidInputError(message)
    return [checked_partition(partition) for partition in partitions]


def partition_label(partitions: Iterable[Mapping[str, str | None]]) -> str:
    """Return ``dt=2024-05-14/region=eu, ...``, for display."""
    return ", ".join("/".join(f"{column}={value}" for column, value in one.items()) for one in partitions)


def partition_text(value: Any) -> str:
    """Return a partition column's value as text that a table can parse."""
    return str(value).lower() if isinstance(value, bool) else str(value)
