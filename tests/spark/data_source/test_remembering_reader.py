"""Streams in the form of each version of Spark: every row is planned once, also by a checkpoint of an older version.

The source has a snapshot and a log that grows; the engine crashes at any step, and is upgraded at some restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from pyspark.sql.datasource import InputPartition

from storage_lib import InvalidInputError
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.spark.data_source.batch_sources import SOURCE, CheckpointSources, offset_of, offsets_in
from storage_lib.spark.data_source.offset_stops import Offset, steps_of, with_stops, without_stops
from storage_lib.spark.data_source.remembering_reader import RememberingReader
from storage_lib.spark.data_source.stream_reader import START
from storage_lib.spark.versions.stream_api import ReadAllAvailable, ReadLimit, ReadMaxRows

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


@dataclass
class Source:
    """A snapshot of the rows below ``snapshot``, and a log of those that follow."""

    snapshot: int = 0
    newest: int = 0


@dataclass
class Reader:
    """Reader of the source in the form of Spark 4.2."""

    source: Source
    target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        return START

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.target = self.source.newest

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        begin = without_stops(start)
        if begin == START:
            return {"snapshot": self.source.snapshot}
        if "snapshot" in begin:
            return {"log": begin["snapshot"]}
        newest = self.source.newest if self.target is None else self.target
        end = min(newest, begin["log"] + limit.max_rows) if isinstance(limit, ReadMaxRows) else newest
        return {"log": end} if end > begin["log"] else start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        steps = [step for step in steps_of(start, end) if step[0] != START]
        return [InputPartition(row) for one, two in steps for row in _rows(one, two)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


def _rows(one: Offset, two: Offset) -> range:
    if "snapshot" in one:
        return range(one["snapshot"] if two != one else 0)
    return range(one["log"], two["log"])


@dataclass
class Engine:
    """Spark's micro-batches: an offset is logged before its batch is planned, and the batch is committed at its end."""

    source: Source
    offsets: list[str] = field(default_factory=list)
    committed: list[list[int]] = field(default_factory=list)
    planned: dict[int, list[int]] = field(default_factory=dict)

    def run(self, *, is_older: bool, batches: Sequence[tuple[int, int, str]]) -> None:
        """Run from the checkpoint. Each batch has rows that arrive, a limit of rows, and where the driver is killed."""
        reader = RememberingReader(Reader(self.source)) if is_older else Reader(self.source)
        if self.offsets and is_older:
            last = self._offset(len(self.offsets) - 1)
            reader.partitions(last, last)
        if len(self.committed) < len(self.offsets):
            self._finish(reader)
        for arriving, limit, killed in batches:
            self.source.newest += arriving
            current = self._offset(len(self.offsets) - 1)
            if isinstance(reader, RememberingReader):
                following = reader.latestOffset()
            else:
                following = reader.latestOffset(current, ReadMaxRows(limit) if limit else ReadAllAvailable())
            if following == current:
                continue
            self.offsets.append(json.dumps(following))
            if killed == "logged":
                return
            self._plan(reader)
            if killed == "planned":
                return
            self.committed.append(self.planned[len(self.offsets) - 1])

    def _finish(self, reader: Reader | RememberingReader) -> None:
        self._plan(reader)
        self.committed.append(self.planned[len(self.offsets) - 1])

    def _plan(self, reader: Reader | RememberingReader) -> None:
        number = len(self.offsets) - 1
        rows = [each.value for each in reader.partitions(self._offset(number - 1), self._offset(number))]
        assert self.planned.setdefault(number, rows) == rows, "a replayed batch has other rows"

    def _offset(self, number: int) -> Offset:
        offset: Offset = START if number < 0 else json.loads(self.offsets[number])
        return offset


BATCHES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from(["", "", "logged", "planned"])), max_size=5
)


@given(
    snapshot=st.integers(0, 4),
    older=st.lists(BATCHES, max_size=4),
    newer=st.lists(BATCHES, max_size=4),
)
def test_every_row_is_planned_once_before_and_after_an_upgrade(
    snapshot: int, older: list[list[tuple[int, int, str]]], newer: list[list[tuple[int, int, str]]]
) -> None:
    engine = Engine(Source(snapshot, snapshot))

    for is_older, runs in ((True, older), (False, newer)):
        for batches in runs:
            engine.run(is_older=is_older, batches=batches)
    engine.run(is_older=False, batches=[(0, 0, "")] * 4)

    rows = [row for batch in engine.committed for row in batch]
    assert rows == list(range(engine.source.newest))


def test_the_first_micro_batch_of_an_older_spark_has_all_rows_that_exist() -> None:
    """With ``availableNow`` it is the only one."""
    engine = Engine(Source(snapshot=3, newest=5))

    engine.run(is_older=True, batches=[(2, 0, "")])

    assert engine.committed == [list(range(7))]


def test_a_reader_that_lost_its_place_fails_instead_of_reading_rows_twice() -> None:
    reader = RememberingReader(Reader(Source(snapshot=3, newest=5)))
    end = reader.latestOffset()

    with pytest.raises(InvalidInputError, match=r"was planned from .*start the stream again from its checkpoint"):
        reader.partitions({"log": 4}, end)


def test_the_offsets_of_a_source_are_read_past_its_stops(tmp_path: Path) -> None:
    first, last = (offset_of("orders", LogOffsets({0: at})) for at in (3, 8))
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(with_stops([START, first, last]))}\n")

    (found,) = CheckpointSources(LocalFileIO(), str(tmp_path)).ranges(0)

    assert (found.source, found.start, found.end) == ("orders", LogOffsets({0: 3}), LogOffsets({0: 8}))
    assert offsets_in(with_stops([START, first, last])) == offsets_in(last)
    assert last[SOURCE] == "orders"
