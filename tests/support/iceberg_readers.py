"""Readers of Iceberg that are not ours: PyIceberg and DuckDB's extension, in a process and environment of their own.

Polars reads in this process.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from storage_lib import DynamicTable
from storage_lib.iceberg.iceberg_view import IcebergView
from tests.support.line_servant import LineServant

PYTHON = Path(__file__).parents[2] / ".local" / "iceberg" / "bin" / "python"
SCRIPT = Path(__file__).with_name("iceberg_script.py")
READERS = ("pyiceberg", "duckdb", "polars")

needs_readers = pytest.mark.skipif(not PYTHON.exists(), reason="readers of Iceberg are not set up: run `make setup`")


def view_of(table: DynamicTable) -> IcebergView:
    """Return the view of a table that has one."""
    view = table.context.iceberg_view
    assert view is not None
    return view


def metadata_of(table: DynamicTable, number: int) -> str:
    """Return the path of the metadata that shows a snapshot."""
    return view_of(table).directory.metadata_path(number)


def read_view(reader: str, metadata: str, scratch: Path, snapshot_id: int | None = None) -> pa.Table:
    """Return the rows that a reader sees; raise ``RefusedError`` with the error of one in the other process."""
    if reader == "polars":
        with warnings.catch_warnings():
            # It recommends a package that plans faster.
            warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)
            return pl.scan_iceberg(metadata, snapshot_id=snapshot_id).collect().to_arrow()
    out = scratch / "view.arrow"
    _servant().ask([reader, metadata, str(out), snapshot_id])
    with pa.OSFile(str(out)) as file:
        return pa.ipc.open_file(file).read_all()


Condition = tuple[str, str, Any]
"""A column, an operator of SQL, and a value; None for ``is null`` and ``is not null``."""


def planned_by_pyiceberg(metadata: str, scratch: Path, condition: Condition) -> tuple[int, pa.Table]:
    """Return how many data files PyIceberg reads for a condition, and the rows that it finds."""
    out = scratch / "planned.arrow"
    files = _servant().ask(["planned", metadata, str(out), _spelled(condition)])["files"]
    with pa.OSFile(str(out)) as file:
        return int(files), pa.ipc.open_file(file).read_all()


def manifests_read_by_pyiceberg(metadata: str, condition: Condition) -> int:
    """Return how many manifests PyIceberg opens to plan a scan by a condition."""
    return int(_servant().ask(["manifests", metadata, _spelled(condition)])["manifests"])


def filtered_by_duckdb(metadata: str, condition: Condition) -> tuple[list[str], list[str]]:
    """Return the rows by a condition that DuckDB pushes into its scan, and by the same over rows in memory."""
    found = _servant().ask(["filtered", metadata, _spelled(condition)])
    return found["some"], found["all"]


def _spelled(condition: Condition) -> list[Any]:
    column, operator, value = condition
    if isinstance(value, date):  # a datetime is one
        value = value.isoformat()
    return [column, operator, str(value) if isinstance(value, Decimal) else value]


def counted(metadata: str) -> int:
    """Return how many rows DuckDB counts."""
    return int(_servant().ask(["count", metadata])["count"])


def printed_by_pyiceberg(program: str) -> str:
    """Return what a program prints where PyIceberg is installed."""
    return str(_servant().ask(["program", program])["printed"])


def answered_by_duckdb(statements: str) -> list[str]:
    """Return the rows of each statement as text; DuckDB may open REST catalogs."""
    return list(_servant().ask(["statements", statements])["rows"])


def canonical(rows: pa.Table, names: Sequence[str]) -> list[str]:
    """Return the rows as sorted text, whatever Arrow types a reader gives them."""
    found = rows.select(list(names)).to_pylist(maps_as_pydicts="strict")
    return sorted(repr([_plain(row[name]) for name in names]) for row in found)


def _plain(value: object) -> object:
    match value:
        case dict():
            return sorted((key, _plain(each)) for key, each in value.items())
        case list():
            return [_plain(each) for each in value]
        case datetime():
            return value.isoformat()
        case _:
            return value


@cache
def _servant() -> LineServant:
    """Return the process, shared by all tests of a session."""
    log = Path(tempfile.mkdtemp(prefix="iceberg-")) / "said.log"
    return LineServant([PYTHON, SCRIPT], log)
