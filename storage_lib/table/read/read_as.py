"""Conversions of read results to pandas and DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError
from storage_lib.schema.encoding.moment import Moment
from storage_lib.schema.filter.filter_text import Filter

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["ReadOf", "as_duckdb", "as_pandas"]


class ReadOf(TypedDict, total=False):
    """The arguments of ``DynamicTable.read``."""

    columns: Sequence[str] | None
    filter: Filter | None
    snapshot_id: int | None
    tag: str | None
    timestamp: Moment | None


def as_pandas(rows: pa.Table) -> pd.DataFrame:
    """Convert to a frame without changing values: integers and booleans have nullable types (``Int64``, ``boolean``).

    With NumPy's types a single null would turn a column of integers into floats. Raises ``InvalidInputError`` if pandas
    is not installed.
    """
    with importing_for("to_pandas()", InvalidInputError):
        import pandas as pd  # noqa: PLC0415  an extra
    nullable = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    return rows.to_pandas(types_mapper=nullable.get)


def as_duckdb(rows: pa.Table, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
    """Return a reusable relation over ``rows`` in ``connection`` (None: DuckDB's default connection).

    Raises ``InvalidInputError`` if DuckDB is not installed.
    """
    with importing_for("to_duckdb()", InvalidInputError):
        import duckdb  # noqa: PLC0415  an extra
    return duckdb.from_arrow(rows) if connection is None else connection.from_arrow(rows)
