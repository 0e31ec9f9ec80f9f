"""End positions of micro-batches of an external topic, without Spark or a broker."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib.errors import LogOffsetsExpiredError
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.table_options import StartupMode
from storage_lib.spark.data_source.changelog_source import ChangelogReader, TopicPartition
from storage_lib.spark.data_source.stream_reader import START
from storage_lib.spark.versions.stream_api import ReadAllAvailable, ReadLimit, ReadMaxRows


class GrowingTopic:
    """A topic and its log in one, with records from 5 to ``ends``; those from 7 have timestamps of at least 1000."""

    name = source = "cdc"
    start = None
    timestamp_millis = 1000
    rows_per_trigger_max = None
    applied_to: str | None = None
    id: str | None = None

    def __init__(self, *ends: int, startup: StartupMode = StartupMode.FULL) -> None:
        self.ends = list(ends)
        self.startup = startup

    def log(self) -> GrowingTopic:
        return self

    def first_offsets(self, log: Any) -> LogOffsets:
        return ExternalTopic.first_offsets(cast("ExternalTopic", self), log)

    def refuse_recreated(self, reached: LogOffsets, log_id: str | None) -> None:
        ExternalTopic.refuse_recreated(cast("ExternalTopic", self), reached, log_id)

    def log_id(self) -> str | None:
        return self.id

    def latest_offsets(self) -> LogOffsets:
        return LogOffsets(dict(enumerate(self.ends)), self.id)

    def earliest_offsets(self) -> LogOffsets:
        return LogOffsets(dict.fromkeys(range(len(self.ends)), 5))

    def offsets_at(self, millis: int) -> LogOffsets:
        assert millis == self.timestamp_millis
        return LogOffsets(dict.fromkeys(range(len(self.ends)), 7))


def reader_of(topic: GrowingTopic) -> ChangelogReader:
    stands_in: Any = topic
    as_topic: ExternalTopic = stands_in
    return ChangelogReader(as_topic, pa.schema([("id", pa.int64()), ("_row_kind", pa.string())]))


@pytest.mark.parametrize(
    ("startup", "first"), [(StartupMode.FULL, 5), (StartupMode.FROM_TIMESTAMP, 7), (StartupMode.LATEST, 9)]
)
def test_the_first_batch_is_empty_and_says_where_the_stream_starts(startup: StartupMode, first: int) -> None:
    reader = reader_of(GrowingTopic(9, startup=startup))

    chosen = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    assert chosen == {"0": first, "source": "cdc"}
    assert reader.partitions(START, chosen) == []


@pytest.mark.parametrize(
    ("limit", "reached"),
    [
        (ReadAllAvailable(), {"0": 9, "1": 20, "2": 6}),
        (ReadMaxRows(8), {"0": 9, "1": 9, "2": 6}),
        (ReadMaxRows(1), {"0": 6, "1": 6, "2": 6}),
    ],
    ids=["all", "shared out", "at least one each"],
)
def test_the_rows_of_a_batch_are_shared_out_over_the_partitions_that_have_news(
    limit: ReadLimit, reached: dict[str, int]
) -> None:
    reader = reader_of(GrowingTopic(9, 20, 6))

    assert reader.latestOffset({"0": 5, "1": 5, "2": 6}, limit) == {**reached, "source": "cdc"}


def test_without_news_a_batch_goes_nowhere_and_partitions_without_news_have_no_task() -> None:
    reader = reader_of(GrowingTopic(9, 6))
    begin = {"0": 9, "1": 6, "source": "cdc"}

    assert reader.latestOffset(begin, ReadAllAvailable()) == begin
    assert reader.latestOffset(begin, ReadMaxRows(1)) == begin
    assert reader.partitions({"0": 5, "1": 6}, begin) == [TopicPartition(0, 5, 9)]


def test_what_comes_after_the_start_of_a_run_of_what_is_there_now_is_left_to_the_next() -> None:
    topic = GrowingTopic(9)
    reader = reader_of(topic)

    reader.prepareForTriggerAvailableNow()
    topic.ends = [12]

    assert reader.latestOffset({"0": 5}, ReadAllAvailable()) == {"0": 9, "source": "cdc"}


def test_no_batch_is_planned_or_repeated_in_a_topic_that_was_made_anew() -> None:
    topic = GrowingTopic(9)
    reader = reader_of(topic)
    topic.id = "first"
    of_nobody = {"0": 7, "source": "cdc"}
    reached = reader.latestOffset(of_nobody, ReadAllAvailable())
    assert reached == {"0": 9, "source": "cdc", "topic-id": "first"}

    topic.id, topic.ends = "second", [20]

    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        reader.latestOffset(reached, ReadAllAvailable())
    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        reader.partitions(reached, {**reached, "0": 20})
