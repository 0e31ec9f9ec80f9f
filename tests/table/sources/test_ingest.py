"""Ingest of an external topic: rows and source offsets are in one snapshot, and are rolled back together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import pyarrow as pa
import pytest

from storage_lib import (
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    LeaseLostError,
    LogOffsetsExpiredError,
    MemoryCatalog,
    SourceRange,
    ingest,
)
from storage_lib.file_store.commit_message import Committable
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.progress import report_to
from storage_lib.schema.options.table_options import StartupMode
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.sources.ingest import IngestResult, SourceReader
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import WRITES, Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import COLUMNS, applied, content, orders, reopened, rows, streamed
from tests.support.recorded_progress import RecordedProgress

SOURCE = "shop-cdc"
KINDS_OF_TABLES = pytest.mark.parametrize(
    "options",
    [{"log.system": "none"}, {"log.system": "kafka"}, {"log.consistency": "eventual"}],
    ids=["files", "transactional", "eventual"],
)


class Topic:
    """A topic of two partitions that other programs write to."""

    def __init__(self) -> None:
        schema = new_table_schema(COLUMNS, options={"bucket": "2"}, time_millis=0)
        self.log = MemoryLogStore(schema, f"{SOURCE}-{uuid4()}", "theirs", FakeClock())
        self.log.create()

    def tell(self, partition: int, *changes: str) -> None:
        batch = rows(*changes).combine_chunks().to_batches()[0]
        codes = pa.array([ROW_KIND_SYMBOLS.index(kind) for kind in batch.column(3).to_pylist()], pa.int8())
        appender = self.log.open_appender()
        appender.write(partition, batch.select(COLUMNS.names), codes)
        appender.finish()

    def make_anew(self) -> None:
        """Delete the topic, and create one of the same name."""
        self.log.drop()
        self.log.create()

    def ingest(
        self,
        table: DynamicTable,
        *,
        startup: StartupMode = StartupMode.FULL,
        rows_per_commit: int = 1000,
        skip_expired: bool = False,
    ) -> IngestResult:
        foreign = ExternalTopic(name=SOURCE, columns=COLUMNS, client_options={}, startup=startup)
        reader = SourceReader(table, foreign, self.log, SOURCE, rows_per_commit, skip_expired=skip_expired)
        return reader.read_up_to(self.log.latest_offsets(), change_tracking=None)


def recorded(table: DynamicTable) -> dict[int, int] | None:
    offsets = reopened(table).inspect.source_offsets(SOURCE)
    return None if offsets is None else dict(offsets.next_offsets)


@KINDS_OF_TABLES
def test_each_run_goes_on_where_the_newest_snapshot_says(options: dict[str, str]) -> None:
    topic, table = Topic(), orders(None, **options)
    topic.tell(0, "+I a 1 10", "+I a 2 20")
    topic.tell(1, "+I b 3 30")

    first = topic.ingest(table)
    assert (first.row_count, first.commit_count) == (3, 1)
    assert recorded(table) == dict(topic.log.latest_offsets().next_offsets)
    assert SOURCE in table.describe()["source offsets"]
    topic.tell(0, "+U a 1 11", "-D a 2 20")
    second = topic.ingest(reopened(table))
    third = topic.ingest(reopened(table))

    assert second.row_count == 2
    assert (third.row_count, third.commit_count, third.snapshot) == (0, 0, None)
    assert content(table) == {"a 1 11", "b 3 30"}
    if table.log is not None:
        assert applied(streamed(table)) == content(table)


@KINDS_OF_TABLES
def test_progress_counts_the_offsets_of_all_partitions_and_no_compaction_of_a_commit(options: dict[str, str]) -> None:
    topic, table = Topic(), orders(None, **options)
    for number in range(6):
        topic.tell(0, f"+I a {number} 10", f"+U a {number} 11")
    topic.tell(1, "+I b 3 30")
    offsets = sum(topic.log.latest_offsets().next_offsets.values())
    told, again = RecordedProgress(), RecordedProgress()

    with report_to(told):
        assert topic.ingest(table, rows_per_commit=2).commit_count > 1
    topic.tell(1, "+I b 4 40")
    with report_to(again):
        topic.ingest(reopened(table))

    assert told.operations == [("ingest", offsets, "offsets")]
    assert again.operations == [("ingest", sum(topic.log.latest_offsets().next_offsets.values()) - offsets, "offsets")]


def test_a_callback_that_fails_ends_an_ingest_after_a_whole_commit() -> None:
    topic, table = Topic(), orders(None)
    for number in range(6):
        topic.tell(0, f"+I a {number} 10")
    told = RecordedProgress(fails_at=3, error=ZeroDivisionError())

    with pytest.raises(ZeroDivisionError), report_to(told):
        topic.ingest(table, rows_per_commit=1)

    assert content(table) == {"a 0 10", "a 1 10"}
    topic.ingest(reopened(table))
    assert content(table) == {f"a {number} 10" for number in range(6)}


@KINDS_OF_TABLES
def test_a_rollback_rewinds_the_source(options: dict[str, str]) -> None:
    topic, table = Topic(), orders(None, **options)
    topic.tell(0, "+I a 1 10")
    kept = topic.ingest(table).snapshot
    topic.tell(1, "+I b 2 20")
    topic.ingest(table)
    before = recorded(table)
    assert kept is not None

    table.rollback_to(snapshot_id=kept.id)
    assert content(table) == {"a 1 10"}
    assert recorded(table) != before

    assert topic.ingest(table).row_count == 1
    assert content(table) == {"a 1 10", "b 2 20"}
    assert recorded(table) == before
    if table.log is not None:
        assert applied(streamed(table)) == content(table)


@pytest.mark.parametrize("tracked", [True, False])
def test_a_rollback_to_equal_rows_rewinds_the_source_too(*, tracked: bool) -> None:
    topic, table = Topic(), orders(None)
    kept = topic.ingest(table).snapshot
    topic.tell(0, "-D a 1 10")
    topic.ingest(table)
    assert kept is not None

    table.rollback_to(snapshot_id=kept.id, change_tracking=tracked)

    assert recorded(table) == {0: 0, 1: 0}
    assert table.rollback_to(snapshot_id=kept.id, change_tracking=tracked) is None


def test_a_rollback_to_before_the_first_run_forgets_the_source() -> None:
    topic, table = Topic(), orders(None)
    table.append(rows("+I z 9 90"))
    topic.tell(0, "+I a 1 10")
    topic.ingest(table)

    table.rollback_to(snapshot_id=1)

    assert recorded(table) is None
    assert topic.ingest(table).row_count == 1


def test_every_commit_carries_the_offsets_on_also_over_those_of_other_engines() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10")
    topic.ingest(table)
    told = recorded(table)

    table.append(rows("+I a 5 50"))
    table.compact()
    table.overwrite(rows("+I b 6 60"), partition={"dt": "b"}, change_tracking=False)
    table.overwrite(rows("+I b 7 70"), partition={"dt": "b"})
    table.maintenance.drop_partitions([{"dt": "b"}])
    table.maintenance.analyze()
    assert recorded(table) == told
    for identifier in range(3):
        table.context.file_store.commit.commit(Committable(commit_user="flink", commit_identifier=identifier))
    table.maintenance.expire_snapshots(retain_last=1)
    assert recorded(table) == told
    table.append(rows("+I a 8 80"))
    table.maintenance.expire_snapshots(retain_last=1)
    assert recorded(table) == told
    assert topic.ingest(table).row_count == 0


def test_a_deletion_that_lacks_its_row_gets_it_from_the_batch_or_the_table() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10", "+I a 2 20")
    topic.ingest(table)
    topic.tell(0, "-D a 1 -", "+I a 3 30", "-D a 3 -", "-D a 9 -", "-D a 2 20")

    topic.ingest(table)

    assert content(table) == set()
    assert streamed(table)[2:] == ["-D a 1 10", "+I a 3 30", "-D a 3 30", "-D a 2 20"]


def test_two_sources_do_not_disturb_each_other() -> None:
    topic, table = Topic(), orders(None)
    table.append(rows("+I z 9 90"), source=SourceRange(source="other", start=None, end=LogOffsets({0: 7})))
    topic.tell(0, "+I a 1 10")

    topic.ingest(table)

    assert table.inspect.source_offsets("other") == LogOffsets({0: 7})
    assert recorded(table) == dict(topic.log.latest_offsets().next_offsets)


@KINDS_OF_TABLES
def test_of_two_who_read_the_same_records_one_commits(options: dict[str, str]) -> None:
    """The records of the other reader are older by then: they must not be applied last."""
    topic, table = Topic(), orders(None, **options)
    topic.tell(0, "+I a 1 10")
    slow = reopened(table)
    stale = SourceRange(source=SOURCE, start=slow.inspect.source_offsets(SOURCE), end=topic.log.latest_offsets())

    topic.ingest(table)
    topic.tell(0, "+I a 1 11")
    topic.ingest(table)
    with pytest.raises(CommitConflictError, match="somebody else has read the same source"):
        slow.append(rows("+I a 1 10"), source=stale)

    assert content(table) == {"a 1 11"}
    assert table.context.leases.holder() is None
    if table.log is not None:
        assert streamed(table) == ["+I a 1 10", "+I a 1 11"]


def test_who_reads_a_source_into_an_eventual_log_has_it_alone() -> None:
    """Concurrent readers commit each record to the log once, since visible records can't be retracted."""
    topic, table = Topic(), orders(MemoryCatalog(), **{"log.consistency": "eventual"})
    topic.tell(0, *(f"+I a {key % 3} {key}" for key in range(30)))

    def read() -> None:
        try:
            topic.ingest(reopened(table), rows_per_commit=4)
        except CommitConflictError:
            read()

    with ThreadPoolExecutor(3) as threads:
        for each in [threads.submit(read) for _ in range(3)]:
            each.result()

    assert streamed(table) == [f"+I a {key % 3} {key}" for key in range(30)]
    assert content(table) == {"a 0 27", "a 1 28", "a 2 29"}


def test_who_has_slept_while_another_read_the_source_writes_nothing() -> None:
    table = orders(None, **{"log.consistency": "eventual"})
    first = SourceRange(source=SOURCE, start=None, end=LogOffsets({0: 1}))
    sleeper = table.new_write().commits.with_lease(
        table.new_write().begin(commit_user="sleeper"), lambda sources: sources
    )

    # Wait for the lease to expire, by its own clock.
    reopened(table).append(rows("+I a 1 2"), source=first)
    with table.new_write().open_task(sleeper) as write, pytest.raises(LeaseLostError):
        write.write(rows("+I a 1 1"))

    assert streamed(table) == ["+I a 1 2"]


def test_a_start_at_the_end_is_remembered_although_there_is_no_row() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10")

    assert topic.ingest(table, startup=StartupMode.LATEST).row_count == 0
    topic.tell(0, "+I a 2 20")
    assert topic.ingest(table, startup=StartupMode.LATEST).row_count == 1
    assert content(table) == {"a 2 20"}


def test_what_is_much_becomes_several_commits() -> None:
    topic, table = Topic(), orders(None, bucket="2")
    topic.tell(0, *(f"+I a {each} 1" for each in range(10)))
    topic.tell(1, *(f"+I b {each} 1" for each in range(10)))

    result = topic.ingest(table, rows_per_commit=5)

    assert (result.row_count, result.commit_count) == (20, 2)
    assert len(content(table)) == 20
    assert recorded(table) == dict(result.offsets.next_offsets)


def test_records_that_the_topic_has_lost_are_not_passed_over_in_silence() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10")
    topic.ingest(table)
    topic.tell(0, "+I a 2 20")
    topic.log.expire(LogOffsets({0: 2}))
    topic.tell(0, "+I a 3 30")

    with pytest.raises(LogOffsetsExpiredError, match=r"source 'shop-cdc' was read up to .*skip_expired=True"):
        topic.ingest(table)
    assert content(table) == {"a 1 10"}

    assert topic.ingest(table, skip_expired=True).row_count == 1
    assert content(table) == {"a 1 10", "a 3 30"}


@KINDS_OF_TABLES
@pytest.mark.parametrize("records", [1, 2, 3], ids=["shorter", "as long", "longer"])
def test_a_topic_that_was_made_anew_is_not_gone_on_with_in_its_middle(options: dict[str, str], records: int) -> None:
    topic, table = Topic(), orders(None, **options)
    topic.tell(0, "+I a 1 10", "+I a 2 20")
    topic.ingest(table)
    topic.make_anew()
    topic.tell(0, *(f"+I b {key} 30" for key in range(records)))

    with pytest.raises(LogOffsetsExpiredError, match=r"'shop-cdc' was deleted and recreated .*skip_expired=True"):
        topic.ingest(table)
    assert content(table) == {"a 1 10", "a 2 20"}

    assert topic.ingest(table, skip_expired=True).row_count == records
    assert content(table) == {"a 1 10", "a 2 20", *(f"b {key} 30" for key in range(records))}
    assert topic.ingest(table).row_count == 0


def test_a_rollback_to_before_a_topic_was_made_anew_says_so_however_alike_the_numbers_are() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10")
    before = topic.ingest(table).snapshot
    topic.make_anew()
    topic.tell(0, "+I a 1 10")
    topic.ingest(table, skip_expired=True)
    assert before is not None

    table.rollback_to(snapshot_id=before.id)

    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        topic.ingest(table)


def test_offsets_of_older_snapshots_which_name_no_topic_are_those_of_the_one_that_is_there() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10")
    table.append(rows("+I a 1 10"), source=SourceRange(source=SOURCE, start=None, end=LogOffsets({0: 1})))
    topic.tell(0, "+I a 2 20")

    assert topic.ingest(table).row_count == 1
    topic.make_anew()
    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        topic.ingest(table)


def test_a_run_that_finds_nothing_new_notes_which_topic_older_offsets_are_of() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10")
    older = SourceRange(source=SOURCE, start=None, end=LogOffsets({0: 1, 1: 0}))
    table.append(rows("+I a 1 10"), source=older)

    assert [topic.ingest(table).commit_count for _ in range(2)] == [1, 0]

    topic.make_anew()
    topic.tell(0, "+I b 1 10", "+I b 2 20")
    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        topic.ingest(table)


def test_a_fast_forward_brings_the_offsets_of_the_branch() -> None:
    topic, table = Topic(), orders(None)
    topic.tell(0, "+I a 1 10")
    topic.ingest(table)
    table.branches.create("load")
    topic.tell(0, "+I a 2 20")

    topic.ingest(table.branches.open("load"))
    assert recorded(table) == {0: 1, 1: 0}
    table.branches.fast_forward("load")

    assert content(table) == {"a 1 10", "a 2 20"}
    assert topic.ingest(table).row_count == 0


@pytest.mark.parametrize("log", ["none", "kafka"])
def test_a_crash_at_any_act_loses_no_record_and_doubles_none(log: str) -> None:
    topic = Topic()
    topic.tell(0, "+I a 1 10", "+I a 2 20")
    topic.tell(1, "+I b 3 30")
    options = {"log.system": log, "write-only": "true"}

    def fresh(files: MemoryFileIO) -> DynamicTable:
        return orders(MemoryCatalog(environment=fake_environment(files)), **options)

    files = MemoryFileIO()
    counted = FaultyFileIO(files)
    topic.ingest(reopened_in(counted, fresh(files), names="sound"), rows_per_commit=1)
    acts = sum(operation in WRITES or operation.startswith("log.") for operation, _ in counted.calls)
    assert acts > 8
    for at in range(1, acts + 1):
        files = MemoryFileIO()
        sound = fresh(files)
        doing = frozenset(operation for operation, _ in counted.calls if operation in WRITES or "log." in operation)
        faulty = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=at, operation=doing))
        with suppress(SimulatedCrash):
            topic.ingest(reopened_in(faulty, sound, names="first"), rows_per_commit=1)

        survivor = reopened_in(FaultyFileIO(files), sound, names="second")
        topic.ingest(survivor)

        assert content(survivor) == {"a 1 10", "a 2 20", "b 3 30"}, f"act {at}"
        assert sum(survivor.inspect.files().column("record_count").to_pylist()) == 3, (
            f"act {at}: each record is in the files once"
        )
        if survivor.log is not None:
            # The next writer ends transactions that a snapshot left open in the log.
            survivor.new_write().abort(survivor.new_write().begin(commit_user="next"), [])
            assert sorted(streamed(survivor)) == ["+I a 1 10", "+I a 2 20", "+I b 3 30"], f"act {at}"


def test_a_commit_of_no_row_at_all_is_refused() -> None:
    table = orders(None)

    with pytest.raises(InvalidInputError, match="rows_per_commit is 0"):
        ingest(table, SOURCE, options={}, rows_per_commit=0)
