"""A Spark source of rows that know when they were born, a steady number a second, in two partitions."""

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
# A batch after a long pause must not be larger than what the machine then needs another pause for.
LONGEST_SECONDS = 10.0


def rows_born(micros: np.ndarray[Any, np.dtype[np.int64]], keys: int = KEYS) -> pa.RecordBatch:
    """Rows born at these microseconds since 1970; ids spread over ``keys`` keys, the same for the same moments."""
    ids = (micros * np.int64(2_654_435_761)) % keys
    payload = pa.array(np.char.add("payload-", (ids % 9973).astype(str)), pa.string())
    return pa.RecordBatch.from_arrays([pa.array(ids), pa.array(micros, pa.timestamp("us")), payload], schema=COLUMNS)


@dataclass
class Span(InputPartition):
    """Every PARTITIONS-th row born in [start, end), seconds since 1970."""

    start: float
    end: float
    number: int


class GeneratorReader(DataSourceStreamReader):
    """Offsets are moments."""

    def __init__(self, rows_per_second: int) -> None:
        self._rows_per_second = rows_per_second

    def initialOffset(self) -> dict[str, float]:  # noqa: N802  Spark's name
        """Now."""
        return {"at": time.time()}

    def latestOffset(self, start: dict[str, float], limit: ReadLimit) -> dict[str, float]:  # noqa: ARG002, N802
        """Now."""
        return {"at": time.time()}

    def partitions(self, start: dict[str, float], end: dict[str, float]) -> list[Span]:
        """The time between, told twice."""
        first = max(start["at"], end["at"] - LONGEST_SECONDS)
        return [Span(first, end["at"], number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows evenly spread over the span."""
        if not isinstance(partition, Span):
            raise TypeError(partition)
        count = int((partition.end - partition.start) * self._rows_per_second / PARTITIONS)
        moments = partition.start + (partition.end - partition.start) * np.arange(count) / max(count, 1)
        batch = rows_born((moments * 1e6).astype(np.int64) + partition.number)
        births = batch.column(BIRTH).cast(pa.timestamp("us", "UTC"))
        yield pa.RecordBatch.from_arrays([batch.column(0), births, batch.column(2)], names=COLUMNS.names)


class GeneratorSource(DataSource):
    """``format("born_rows")`` with the option ``rowspersecond``."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "born_rows"

    def schema(self) -> str:
        """Births are instants, as Spark's clock tells them."""
        return f"id BIGINT, {BIRTH} TIMESTAMP, payload STRING"

    def streamReader(self, schema: object) -> GeneratorReader:  # noqa: ARG002, N802
        """The reader."""
        return GeneratorReader(int(self.options["rowspersecond"]))
