"""Row callables for the tables of a reprocessing drill."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

__all__ = ["DAY_ROWS_ALLOWED", "rows_of_changes", "rows_of_day"]

DAY_ROWS_ALLOWED = {"AIRFLOW__DYNAMIC_TABLE__CALLABLE_MODULES": "dags-folder, tests.support.day_rows"}
"""Environment of an Airflow whose tasks may call the functions of this module."""


def rows_of_day(partition: Mapping[str, str]) -> pa.Table:
    """Return two rows of the partition's day that no other writer produces."""
    schema = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    return pa.table({"day": [partition["day"]] * 2, "id": [100, 200]}, schema=schema)


def rows_of_changes(changes: pa.RecordBatchReader) -> pa.Table:
    """Return two fixed rows, regardless of ``changes``."""
    changes.read_all()
    return rows_of_day({"day": "c"})
