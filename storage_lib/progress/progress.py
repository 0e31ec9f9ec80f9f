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

The thread that called the verb calls it, except in ``storage_lib.spark.compact``, where a thread of pyspark does. An
exception that it raises ends the operation as any other failure would: nothing more is committed, and files that
were written are deleted. A ``StorageError`` becomes the cause of a ``RuntimeError``, so that nobody takes it for one of
the operation. A callback must not write to the table, whose lease the operation may hold.
"""

ProgressOption: TypeAlias = ProgressCallback | Literal[False] | None
"""A callback; False for no progress; None for the setting of ``report_to``, by default a bar if a person sees it."""
