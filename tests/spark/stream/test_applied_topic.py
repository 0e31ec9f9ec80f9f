"""A stream that applies a topic leaves the table that ``ingest`` leaves, wherever its micro-batches end and it crashes.

The same records go into one table by one ``ingest``, and into another by micro-batches at random offsets, whose
processes are killed at any moment; a new one repeats the last micro-batch of the checkpoint, as Spark does.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import CommitConflictError, DynamicTable, InvalidInputError, MemoryCatalog
from storage_lib.errors import CorruptFileError, StorageError
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.types.rejected_schema import REJECTED_SCHEMA
from storage_lib.schema.types.type_spelling import parse_type
from storage_lib.spark.data_source.batch_sources import CheckpointSources, is_begun, offset_of
from storage_lib.spark.data_source.offset_stops import with_stops
from storage_lib.spark.stream.applied_topic import AppliedTopic
from storage_lib.table.protocol.source_offsets import SourceRange
from tests.support.deep_tests import thinned
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import reopened
from tests.support.raw_topic import NAME, RawTopic
from tests.table.sources.captured_database import CapturedDatabase, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib.table.sources.row_check import RowCheck

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "item": "VARCHAR(10) NOT NULL",
    "note": "VARCHAR(50)",
    "price": "DECIMAL(10, 2)",
    "pic": "VARBINARY(50)",
}
SERVERS = {"log.kafka.bootstrap.servers": "nowhere:9092", "topic": NAME}
OFFSET = re.compile(r"partition (\d+), offset (\d+)")


@dataclass
class Stream:
    """A stream of Spark without Spark: its checkpoint, and a process of it that may crash."""

    catalog: MemoryCatalog
    table: DynamicTable
    topic: RawTopic
    options: Mapping[str, str]
    directory: Path
    ends: list[LogOffsets] = field(default_factory=list)
    is_finished: bool = True
    """Whether the last micro-batch of the checkpoint has ended."""

    is_counted: bool = True
    """Whether no process was killed, so that ``refused_count`` is known."""

    refused_count: int = 0
    expect: RowCheck | None = None

    @property
    def past(self) -> CheckpointSources:
        """The checkpoint."""
        return CheckpointSources(LocalFileIO(), str(self.directory))

    def begin(self, end: LogOffsets) -> None:
        """Write down where a new micro-batch ends."""
        for name in ("offsets", "commits"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        line = json.dumps(offset_of(NAME, end))
        (self.directory / "offsets" / str(len(self.ends))).write_text(f"v1\n{{}}\n{line}")
        self.ends.append(end)
        self.is_finished = False

    def applied(self, table: DynamicTable | None = None) -> AppliedTopic:
        """Start a process."""
        self.past.refuse_another_past(self.table, by_parts=True)
        parsed = ExternalTopic.parse({**SERVERS, **self.options}, self.table.arrow_schema)
        return AppliedTopic(table or self.table, parsed, self.past, lambda: self.topic, expect=self.expect)

    def finish(self, applied: AppliedTopic) -> None:
        """Apply the last micro-batch."""
        applied.apply(len(self.ends) - 1)
        (self.directory / "commits" / str(len(self.ends) - 1)).write_text("v1\n{}")
        self.is_finished = True

    def run(self, chance: random.Random, *, kills: float) -> None:
        """Apply what is new in micro-batches, killed and repeated."""
        while self._has_more():
            faults = [Fault(chance.choice(KINDS), at=chance.randrange(1, 70))] if chance.random() < kills else []
            storage = FaultyFileIO(self.table.environment.file_io, *faults)
            applied = self.applied(reopened_in(storage, self.table, names=f"p{len(self.ends)}x{chance.random()}"))
            try:
                while self._has_more():
                    if self.is_finished:
                        self.begin(self._next_end(chance))
                    self.finish(applied)
            except SimulatedCrash:
                self.is_counted = False
                clock = self.table.environment.clock
                assert isinstance(clock, FakeClock)
                clock.pass_time(30)  # the lease of the killed process ends
            counts = applied.counts
            self.refused_count += counts.rejected_count + counts.skipped_count
            self.table = self.catalog.load_table(self.table.name)

    def _has_more(self) -> bool:
        return not self.is_finished or not self.ends or self.ends[-1] != self.topic.latest_offsets()

    def _next_end(self, chance: random.Random) -> LogOffsets:
        if not self.ends:
            return LogOffsets({0: 0}, "raw")
        at, newest = self.ends[-1].of(0), self.topic.latest_offsets().of(0)
        return LogOffsets({0: min(newest, at + chance.choice([1, 2, 5, 1000]))}, "raw")


CRASH = Fault(FaultKind.CRASH_BEFORE, at=2, operation="create_if_absent", path="snapshot-")
KINDS = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER, FaultKind.TEAR)


@pytest.mark.parametrize("seed", thinned(range(300), 12))
def test_micro_batches_leave_the_table_that_one_ingest_leaves(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    settings = Settings.drawn(chance, has_key=chance.random() < 0.8)
    options = drawn_options(chance, settings)
    catalog = MemoryCatalog(environment=fake_environment())
    table = table_of(catalog, chance, settings)
    mine = Stream(catalog, table, RawTopic(batch_size=chance.choice([1, 3, 1000])), options, tmp_path)
    other = MemoryCatalog(environment=fake_environment()).create_table(
        table.name,
        [(field.name, field.type) for field in table.schema.fields],
        primary_key=table.schema.primary_keys,
        options={"log.system": chance.choice(["none", "kafka"])},
    )
    database = CapturedDatabase(
        settings,
        chance,
        mine.topic,
        misfits=chance.choice([0, 0.1, 0.4]),
        truncates=chance.random() < 0.5,
        moves_at_once=chance.random() < 0.5,
    )
    mine.expect = random.Random(f"check {seed}").choice([None, items_of_five])  # noqa: S311  reproducible
    refused = 0

    for _ in range(4):
        for _ in range(chance.randint(0, 20)):
            database.statement()
        expected: StorageError | None = None
        try:
            read = mine.topic.ingest(other, options=options, expect=mine.expect)
            refused += read.rejected_count + read.skipped_count
        except (CorruptFileError, InvalidInputError) as error:
            expected = error
        other = other.refresh()
        kills = chance.choice([0, 0.5])
        if expected is not None:
            with pytest.raises(type(expected)) as stopped:
                mine.run(chance, kills=kills)
            compare_stops(stopped.value, expected, mine.table.refresh(), other)
            return
        mine.run(chance, kills=kills)

        assert columns_of(mine.table) == columns_of(other), options
        assert rows_of(mine.table) == rows_of(other), options
        assert rejected_of(mine.table) == rejected_of(other), options
        assert mine.table.inspect.source_offsets(NAME) == other.inspect.source_offsets(NAME)
        if mine.is_counted:
            assert mine.refused_count == refused


def items_of_five(rows: pa.Table) -> dict[int, tuple[str | None, str]]:
    """Refuse items with 5, 10, ... letters."""
    items = rows["item"].to_pylist()
    return {place: ("item", f"five of {item}") for place, item in enumerate(items) if item and len(item) % 5 == 0}


def compare_stops(error: Exception, expected: Exception, mine: DynamicTable, other: DynamicTable) -> None:
    """Assert that both readers stopped at the same record for the same reason, with the rows before it."""
    if "source.reject-max" in str(expected):
        assert "source.reject-max" in str(error)  # which commit exceeds it depends on what commits have
        return
    assert OFFSET.findall(str(error)) == OFFSET.findall(str(expected))
    if "Nothing of the commit that it belongs to was written" in str(expected):
        return  # the commits of the micro-batches before it stay
    assert str(error) == str(expected)
    assert columns_of(mine) == columns_of(other)
    assert rows_of(mine) == rows_of(other)


def test_a_micro_batch_that_the_table_has_in_part_is_continued_and_one_that_it_has_is_left(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, records=6)
    stream.begin(LogOffsets({0: 0}, "raw"))
    stream.finish(stream.applied())
    stream.begin(stream.topic.latest_offsets())
    small = AppliedTopic(
        reopened_in(FaultyFileIO(stream.table.environment.file_io, CRASH), stream.table, names="first"),
        ExternalTopic.parse(SERVERS, stream.table.arrow_schema),
        stream.past,
        lambda: stream.topic,
        rows_per_commit=2,
    )

    with pytest.raises(SimulatedCrash):
        small.apply(1)
    reached = reopened(stream.table).inspect.source_offsets(NAME)
    stream.finish(stream.applied())
    committed = stream.table.inspect.latest_snapshot_id()
    stream.applied().apply(1)

    assert reached == LogOffsets({0: 2})
    assert stream.table.count() == 6
    assert stream.table.inspect.latest_snapshot_id() == committed


def test_a_micro_batch_is_refused_where_another_process_has_read_further(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, records=2)
    stream.begin(LogOffsets({0: 0}, "raw"))
    applied = stream.applied()
    stream.finish(applied)
    stream.begin(stream.topic.latest_offsets())
    stream.topic.tell(None, created(2))
    stream.topic.ingest(stream.table)

    with pytest.raises(CommitConflictError, match=r"up to offsets .*3.* from offsets .*0.* to offsets .*2"):
        stream.finish(applied)
    with pytest.raises(InvalidInputError, match="new checkpoint_location"):
        stream.applied()
    assert stream.table.count() == 3


def test_a_first_micro_batch_with_records_begins_at_its_first_stop(tmp_path: Path) -> None:
    """Spark before 4.2 puts the start of a stream and the first records into one micro-batch."""
    stream = stream_of(tmp_path, records=5)
    begun, end = offset_of(NAME, LogOffsets({0: 2}, "raw")), offset_of(NAME, LogOffsets({0: 5}, "raw"))
    stream.begin(LogOffsets({0: 5}, "raw"))
    line = json.dumps(with_stops([{"start": "log.scan"}, begun, end]))
    (tmp_path / "offsets" / "0").write_text(f"v1\n{{}}\n{line}")

    stream.finish(stream.applied())

    assert sorted(stream.table.to_arrow()["id"].to_pylist()) == [2, 3, 4]


@pytest.mark.parametrize(
    ("start", "reached", "is_begun_"),
    [
        (None, None, True),
        (None, {0: 9, 1: 4}, True),
        (None, {0: 8, 1: 4}, False),
        ({0: 5}, None, False),
        ({0: 5}, {0: 5}, True),
        ({0: 5}, {0: 7, 1: 3}, True),
        ({0: 5}, {0: 9, 1: 4}, True),
        ({0: 5}, {0: 4, 1: 4}, False),
        ({0: 5}, {0: 9, 1: 5}, False),
        ({0: 5}, {0: 9, 2: 1}, False),
    ],
)
def test_a_table_has_begun_a_micro_batch_between_its_ends(
    start: dict[int, int] | None, reached: dict[int, int] | None, *, is_begun_: bool
) -> None:
    end = LogOffsets({0: 9, 1: 4}, "topic")
    batch = SourceRange(source="cdc", start=None if start is None else LogOffsets(start, "topic"), end=end)

    for log_id in ("topic", None, "another"):
        found = is_begun(batch, None if reached is None else LogOffsets(reached, log_id))
        assert found is (is_begun_ and (reached is None or log_id != "another"))


def stream_of(directory: Path, *, records: int) -> Stream:
    catalog = MemoryCatalog(environment=fake_environment())
    options = {"log.system": "none", "write-only": "true"}
    table = catalog.create_table("shop.items", {"id": "BIGINT", "v": "STRING"}, primary_key=["id"], options=options)
    topic = RawTopic(batch_size=2)
    for item in range(records):
        topic.tell(None, created(item))
    return Stream(catalog, table, topic, {}, directory)


def created(item: int) -> bytes:
    return json.dumps({"before": None, "after": {"id": item, "v": "a"}, "op": "c"}).encode()


def drawn_options(chance: random.Random, settings: Settings) -> dict[str, str]:
    drawn = {
        "source.on-reject": [None, "fail", "skip", "quarantine", "quarantine"],
        "source.on-truncate": [None, "fail", "apply", "apply", "ignore"],
        "source.schema-change": [None, "evolve", "fail", "ignore"],
        "source.key-change": [None, "fail", "ignore"],
        "source.reject-max": [None, None, "3"],
        "source.skip": [None, None, None, "0:2, 0:7"],
    }
    chosen = {key: value for key, values in drawn.items() if (value := chance.choice(values)) is not None}
    if chosen.get("source.on-reject") != "quarantine":
        chosen.pop("source.reject-max", None)  # only records that are stored count beyond one run
    if settings.is_full and settings.connector != "mysql":
        chosen["source.before-image"] = "whole"
    if not settings.has_key:
        chosen.pop("source.key-change", None)
    return {**chosen, "log.format": settings.format}


def table_of(catalog: MemoryCatalog, chance: random.Random, settings: Settings) -> DynamicTable:
    """Create a table, without one of the columns at times: then its source has a new one."""
    names = [name for name in COLUMNS if name in ("id", "item") or chance.random() < 0.8]
    options = {"log.system": chance.choice(["none", "kafka"]), "lease.timeout": "5 s"}
    if settings.has_key and chance.random() < 0.3:
        options["deletion-vectors.enabled"] = "true"
    return catalog.create_table(
        "shop.orders",
        [(name, parse_type(COLUMNS[name])) for name in names],
        primary_key=["id"] if settings.has_key else [],
        options=options,
    )


def columns_of(table: DynamicTable) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in table.schema.fields]


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=repr)


def rejected_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    kept = [name for name in REJECTED_SCHEMA.names if name != "time_millis"]
    stored = table.inspect.rejected_records().select(kept).to_pylist()
    return sorted((tuple(row.values()) for row in stored), key=repr)
