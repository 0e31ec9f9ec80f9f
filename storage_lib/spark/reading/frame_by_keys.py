"""Rows of files that have to be merged, as far as Spark's own readers read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class FrameByKeys:
    """The rows, of which keys alone tell whether they are the table's, and the files that Spark reads itself."""

    df: DataFrame
    native_files: int
    native_bytes: int
