"""Stream readers for Spark before 4.2, which asks for the newest offset without saying where the stream is.

Spark plans each micro-batch, and after a restart first an empty one at the last offset of the checkpoint, so a reader
learns its place from these calls. If it is asked for an offset first, it begins at the start; where that is wrong, the
stops of the offset don't fit the next plan, and the stream fails (``steps_of``) instead of reading rows twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from storage_lib.spark.data_source.offset_stops import Offset, with_stops, without_stops
from storage_lib.spark.versions.spark_feature import SparkFeature
from storage_lib.spark.versions.stream_api import ReadAllAvailable, ReadLimit

if TYPE_CHECKING:
    import pyarrow as pa


class SteppingReader(Protocol):
    """A stream reader of Spark 4.2, which is asked for the offset that follows another one."""

    def initialOffset(self) -> Offset: ...  # noqa: N802  Spark's names

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset: ...  # noqa: N802

    def prepareForTriggerAvailableNow(self) -> None: ...  # noqa: N802

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]: ...

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]: ...


class RememberingReader(DataSourceStreamReader):
    """Puts all steps of a reader up to the newest rows into one micro-batch."""

    def __init__(self, reader: SteppingReader) -> None:
        self._reader = reader
        self._reached: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        """Return the offset at which the stream begins."""
        return self._reader.initialOffset()

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802  Spark's name, before 4.2
        """Return the end of the next micro-batch, which contains all rows that exist now.

        It may be the only one (``availableNow``). Rows that arrive meanwhile are left to the next one.
        """
        begin = self.initialOffset() if self._reached is None else self._reached
        self._reader.prepareForTriggerAvailableNow()
        places = [without_stops(begin)]
        while (following := self._reader.latestOffset(places[-1], ReadAllAvailable())) != places[-1]:
            places.append(following)
        return begin if len(places) == 1 else with_stops(places)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan a micro-batch, and remember its end."""
        self._reached = end
        return self._reader.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one partition."""
        return self._reader.read(partition)


def reader_for_spark(reader: DataSourceStreamReader) -> DataSourceStreamReader:
    """Return the reader in the form in which the installed Spark calls it."""
    return reader if SparkFeature.ADMISSION_CONTROL.is_here else RememberingReader(reader)  # type: ignore[arg-type]
