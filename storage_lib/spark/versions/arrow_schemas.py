"""Spark's conversion of a schema to Arrow, whose parameters differ between versions."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas import types

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(types.to_arrow_schema).parameters else {"timestamp_utc": True}
)


def to_arrow_schema(struct: StructType) -> pa.Schema:
    """Return the Arrow schema of ``struct`` with timestamps in UTC; raises pyspark's exceptions."""
    return types.to_arrow_schema(struct, **_UTC)
