"""Tiering during a stream whose rows are written to the log first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import DynamicTable, LogOffsetsExpiredError, StreamPosition, UnavailableError
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.spark import write, write_stream
from storage_lib.spark.data_source.stream_tiering import StreamTiering, tier_if_overdue
from tests.support.fake_environment import FakeClock
from tests.support.orders_table import content, orders, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTUAL = {"log.consistency": "eventual"}


def written(table: DynamicTable, *changes: str) -> None:
    write_context = table.new_write().begin(commit_user="stream")
    with table.new_write().open_task(write_context) as task:
        task.write(rows(*changes))
        table.new_write().commit(write_context, [task.prepare_commit()], 1, defers_tiering=True)


class Rounds:
    """A table whose tiering calls return given outcomes."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)
        self.errors_seen: list[Exception | None] = []
        self.tiering: StreamTiering | None = None
        self.maintenance = self

    def tier_log(self, **_: Any) -> object:
        assert self.tiering is not None
        self.errors_seen.append(self.tiering.error)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def test_a_round_that_fails_is_told_and_the_next_one_is_tried() -> None:
    failure = UnavailableError("a broker is away")
    table: Any = Rounds("a snapshot", failure, None)
    tiering = table.tiering = StreamTiering(table, "query", interval_seconds=0.001)

    # The last round runs after the stream has ended.
    tiering.start(until=lambda: len(table.outcomes) <= 1)
    tiering._thread.join(120)  # type: ignore[union-attr]

    assert table.errors_seen == [None, None, failure]
    assert table.outcomes == []
    assert tiering.snapshot_count == 1
    assert tiering.error is None


def test_the_files_are_up_to_the_log_when_a_stream_was_stopped_long_before_the_next_round() -> None:
    table = orders(None, **EVENTUAL)
    written(table, "+I a 1 10")
    tiering = StreamTiering(table, "query", interval_seconds=3600)
    tiering.start(until=threading.Event().is_set)

    tiering.stop()

    assert content(table) == {"a 1 10"}
    assert tiering.error is None


def test_an_error_that_no_other_try_mends_stays_to_be_seen() -> None:
    failure = LogOffsetsExpiredError("gone")
    table: Any = Rounds(failure)
    tiering = table.tiering = StreamTiering(table, "query", interval_seconds=3600)
    tiering.start(until=threading.Event().is_set)

    tiering.stop()

    assert tiering.error is failure


def test_a_stream_without_anybody_beside_it_tiers_when_it_is_overdue() -> None:
    table = orders(None, **EVENTUAL)
    written(table, "+I a 1 10")
    tier_if_overdue(table)
    written(table, "+U a 1 11")
    tier_if_overdue(table)
    assert content(table) == {"a 1 10"}

    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(121)
    tier_if_overdue(table)

    assert content(table) == {"a 1 11"}


def all_changes(table: DynamicTable) -> pa.Table:
    changes = table.stream(position=StreamPosition(snapshot_id=0, offsets=LogOffsets())).poll()
    assert changes is not None
    return changes


def values_of(table: pa.Table) -> dict[int, str]:
    """Return the rows of a reader that keeps the newest row of each key."""
    return {row["id"]: row["v"] for row in table.to_pylist()}


@contextmanager
def running(stream: Any) -> Iterator[Any]:
    try:
        yield stream
    finally:
        stream.stop()


@pytest.mark.spark
def test_a_stream_is_in_the_log_at_once_and_in_the_files_by_its_end(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    table = make_table(log=True, log__consistency="eventual", bucket=2)
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "0.json").write_text('{"id": 1, "v": "a"}\n{"id": 2, "v": "b"}\n{"id": 3, "v": "c"}')
    source = spark.readStream.schema("id long, v string").json(str(tmp_path / "input"))
    checkpoint = str(tmp_path / "checkpoint")

    stream = write_stream(source, table, checkpoint_location=checkpoint, tier_interval_seconds=3600)
    with running(stream):
        stream.processAllAvailable()
        # The first micro-batch tiered because nothing was tiered before; the second leaves it to the thread, in an
        # hour.
        (tmp_path / "input" / "1.json").write_text('{"id": 1, "v": "newer"}')
        stream.processAllAvailable()
        in_files, in_log = values_of(table.to_arrow()), values_of(all_changes(table))
        assert table.context.leases.holder() is None
    assert stream.tiering is not None
    assert stream.tiering.error is None

    assert (in_files, in_log) == ({1: "a", 2: "b", 3: "c"}, {1: "newer", 2: "b", 3: "c"})
    assert values_of(table.to_arrow()) == in_log
    written_as_batch = write(spark.createDataFrame([(4, "d")], "id long, v string"), table)
    assert written_as_batch == table.context.file_store.snapshots.latest()
    source_now = table.stream()
    snapshot = source_now.poll()
    assert snapshot is not None
    assert values_of(snapshot) == {**in_log, 4: "d"}
    assert source_now.poll() is None
