"""Rows of other libraries as input."""

from __future__ import annotations

import sys
from types import ModuleType

import pyarrow as pa
import pytest

from storage_lib.table.input.frames import arrow_rows


class _Exported:
    """Rows of a library that has Arrow's interface for streams."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def test_rows_are_taken_while_another_thread_imports_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"k": pa.array([1], pa.int64())})
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))

    taken = arrow_rows("d.t", _Exported(rows), rows.schema)

    assert isinstance(taken, pa.RecordBatchReader)
    assert taken.read_all() == rows
