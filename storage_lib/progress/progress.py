"""The value that a progress callback receives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Progress", "ProgressCallback", "ProgressOption"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of an operation on a table.

    ``done`` and ``total`` count ``unit`` ("buckets", "files", "rows", "offsets"). ``total`` is None while it is
    unknown. The last report of an operation that succeeds, and only that one, has ``done == total``.
    """

    operation: str
    table: str
    done: int
    total: int | None
    unit: str

    def __str__(self) -> str:
        return f"{self.operation} {self.table}: {self.count}"

    @property
    def count(self) -> str:
        """``done``, ``total`` and the unit as text, for example ``1,200 of 6,400 buckets``."""
        of_total = "" if self.total is None else f" of {self.total:,}"
        return f"{self.done:,}{of_total} {self.unit}"


ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Receives the reports of an operation one at a time, in order of ``done``.

It runs in the thread that called the verb, except in ``storage_lib.spark.compact``, where it runs in a thread of
pyspark. An exception that it raises fails the operation: nothing more is committed, and written files are deleted. A
``StorageError`` becomes the cause of a ``RuntimeError``, which can't be confused with an error of the operation. A
callback must not write to the table, because the operation may hold its lease.
"""

ProgressOption: TypeAlias = ProgressCallback | Literal[False] | None
"""A callback; False for no progress; None for the setting of ``report_to``, by default a bar if a person sees it."""
