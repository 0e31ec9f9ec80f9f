"""A Spark source that counts: its n-th batch is commit n + 1 of the model's writer ``spark``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from tests.soak.soak_model import SPARK, rows_of


class SoakSource(DataSource):
    """Options: ``seed``, and ``finishes`` (``true``: there is nothing new)."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "soak"

    def schema(self) -> str:
        """An order with its kind."""
        return "dt string, id long, price long, _row_kind string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """One reader of it."""
        return SoakReader(int(self.options["seed"]), finishes=self.options["finishes"] == "true")


class SoakReader(DataSourceStreamReader):
    """An offset is the number of commits before it."""

    def __init__(self, seed: int, *, finishes: bool) -> None:
        self._seed = seed
        self._finishes = finishes

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """None yet."""
        return {"number": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """One commit a batch, whatever it is called."""
        return ReadMaxRows(1)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """One more."""
        return start if self._finishes else {"number": start["number"] + 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each commit: there is one."""
        return [InputPartition(number) for number in range(start["number"] + 1, end["number"] + 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one commit."""
        yield from rows_of(self._seed, SPARK, partition.value).to_batches()
