"""Spark source of rows with their creation time, at a constant rate, in two partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

__all__ = ["BIRTH", "COLUMNS", "GeneratorSource", "rows_born"]

BIRTH = "created"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field(BIRTH, pa.timestamp("us")),
        pa.field("payload", pa.string()),
    ]
)
PARTITIONS = 2
KEYS = 1_000_000
# Limits a batch after a long pause, which would otherwise be so large that it causes the next long pause.
LONGEST_SECONDS = 10.0


def rows_born(micros: np.ndarray[Any, np.dtype[np.int64]], keys: int = KEYS) -> pa.RecordBatch:
    """Return rows created at these epoch microseconds; their ids, a function of the time, spread over ``keys`` keys."""
    ids = (micros * np.int64(2_654_435_761)) % keys
    payload = pa.array(np.char.add("payload-", (ids % 9973).astype(str)), pa.string())
    return pa.RecordBatch.from_arrays([pa.array(ids), pa.array(micros, pa.timestamp("us")), payload], schema=COLUMNS)


@dataclass
class Span(InputPartition):
    """Every PARTITIONS-th row created in [start, end), epoch seconds."""

    start: float
    end: float
    number: int


class GeneratorReader(DataSourceStreamReader):
    """Stream reader whose offsets are epoch seconds."""

    def __init__(self, rows_per_second: int) -> None:
        self._rows_per_second = rows_per_second

    def initialOffset(self) -> dict[str, float]:  # noqa: N802  Spark's name
        """Return the current time."""
        return {"at": time.time()}

    def latestOffset(self, start: dict[str, float], limit: ReadLimit) -> dict[str, float]:  # noqa: ARG002, N802
        """Return the current time."""
        return {"at": time.time()}

    def partitions(self, start: dict[str, float], end: dict[str, float]) -> list[Span]:
        """Return the time between the offsets, at most `LONGEST_SECONDS`, for each partition."""
        first = max(start["at"], end["at"] - LONGEST_SECONDS)
        return [Span(first, end["at"], number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield rows evenly spread over the span."""
        if not isinstance(partition, Span):
            raise TypeError(partition)
        count = int((partition.end - partition.start) * self._rows_per_second / PARTITIONS)
        moments = partition.start + (partition.end - partition.start) * np.arange(count) / max(count, 1)
        batch = rows_born((moments * 1e6).astype(np.int64) + partition.number)
        births = batch.column(BIRTH).cast(pa.timestamp("us", "UTC"))
        yield pa.RecordBatch.from_arrays([batch.column(0), births, batch.column(2)], names=COLUMNS.names)


class GeneratorSource(DataSource):
    """Spark data source ``born_rows``, with the option ``rowspersecond``."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return "born_rows"

    def schema(self) -> str:
        """Return the schema; creation times are instants (TIMESTAMP), like Spark's clock."""
        return f"id BIGINT, {BIRTH} TIMESTAMP, payload STRING"

    def streamReader(self, schema: object) -> GeneratorReader:  # noqa: ARG002, N802
        """Return the stream reader."""
        return GeneratorReader(int(self.options["rowspersecond"]))
