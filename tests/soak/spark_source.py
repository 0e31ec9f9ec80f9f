"""Spark source of numbered commits: its n-th batch is commit n + 1 of the model's writer ``spark``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from tests.soak.soak_model import SPARK, rows_of


class SoakSource(DataSource):
    """Options: ``seed``, and ``finishes`` (``true``: no new commits)."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)``."""
        return "soak"

    def schema(self) -> str:
        """Return the columns of an order and its row kind."""
        return "dt string, id long, price long, _row_kind string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return a stream reader."""
        return SoakReader(int(self.options["seed"]), finishes=self.options["finishes"] == "true")


class SoakReader(DataSourceStreamReader):
    """Offsets are the number of preceding commits."""

    def __init__(self, seed: int, *, finishes: bool) -> None:
        self._seed = seed
        self._finishes = finishes

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return the offset before the first commit."""
        return {"number": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """Limit batches to one commit; the limit's type is irrelevant."""
        return ReadMaxRows(1)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the offset of the next commit, or ``start`` if the source finishes."""
        return start if self._finishes else {"number": start["number"] + 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one partition for the commit of the batch."""
        return [InputPartition(number) for number in range(start["number"] + 1, end["number"] + 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one commit."""
        yield from rows_of(self._seed, SPARK, partition.value).to_batches()
