"""Measured formats by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.spark_engine.formats.merged_by_sql import Delta, Iceberg, Paimon
from benchmarks.spark_engine.formats.ours import Ours
from benchmarks.spark_engine.formats.plain_parquet import PlainParquet

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.spark_engine.table_format import SessionOrder, TableFormat

_FORMATS: dict[str, Callable[[SessionOrder], TableFormat]] = {
    "ours": Ours,
    "paimon": Paimon,
    "iceberg": Iceberg,
    "delta": Delta,
    "plain parquet": PlainParquet,
}
NAMES = tuple(_FORMATS)
"""Names in the order of a round."""


def started_format(name: str, order: SessionOrder) -> TableFormat:
    """Start a session of the format of that name."""
    return _FORMATS[name](order)
