"""Contract of every log, tested on the log in memory and on a real broker."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pyarrow as pa
import pytest

from storage_lib.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LeaseLostError,
    LogOffsetsExpiredError,
    NotFoundError,
    UnavailableError,
)
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import EndOutcome, LogStore, WrittenRange
from storage_lib.schema.table_schema import TableSchema
from tests.support.log_changes import changes, log_schema, log_texts, read_log

OpenLog = Callable[..., LogStore]


@pytest.fixture
def schema() -> TableSchema:
    return log_schema(buckets=2)


@pytest.fixture
def log(open_log: OpenLog, schema: TableSchema) -> LogStore:
    store = open_log(schema)
    store.create()
    return store


def committed(log: LogStore, schema: TableSchema, text: str, *, slot: int = 0, bucket: int = 0) -> WrittenRange:
    transaction = log.begin(slot)
    transaction.write(bucket, *changes(schema, text))
    (written,) = transaction.flush()
    assert log.end(transaction.handle, commit=True) is EndOutcome.ENDED
    return written


def test_committed_changes_are_read_back_in_order(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 1 a, +U 1 b, -D 1 b, +I 2 null")

    assert log_texts(log) == ["+I 1 a", "+U 1 b", "-D 1 b", "+I 2 null"]


def test_an_open_transaction_is_invisible_until_it_is_committed(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    (written,) = transaction.flush()

    before = (log_texts(log), log.latest_offsets().of(0), log.is_committed(written))
    log.end(transaction.handle, commit=True)

    assert before == ([], 0, False)
    assert log_texts(log) == ["+I 1 a"]
    assert log.latest_offsets().of(0) == 2
    assert log.is_committed(written)


def test_an_aborted_transaction_is_never_seen(log: LogStore, schema: TableSchema) -> None:
    first = log.begin(0)
    first.write(0, *changes(schema, "+I 1 a"))
    (written,) = first.flush()
    first.abort()
    committed(log, schema, "+I 2 b")

    assert log_texts(log) == ["+I 2 b"]
    assert not log.is_committed(written)


def test_aborting_twice_or_after_the_end_does_no_harm(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    transaction.flush()
    log.end(transaction.handle, commit=True)

    transaction.abort()
    transaction.abort()

    assert log_texts(log) == ["+I 1 a"]


def test_the_transactions_of_two_slots_interleave_in_one_bucket(log: LogStore, schema: TableSchema) -> None:
    kept, dropped = log.begin(0), log.begin(1)
    kept.write(0, *changes(schema, "+I 1 a"))
    kept.flush()
    dropped.write(0, *changes(schema, "+I 2 b"))
    dropped.flush()
    kept.write(0, *changes(schema, "+I 3 c"))
    kept.flush()

    log.end(dropped.handle, commit=False)
    log.end(kept.handle, commit=True)

    assert log_texts(log) == ["+I 1 a", "+I 3 c"]


def test_the_stable_offset_waits_for_the_oldest_open_transaction(log: LogStore, schema: TableSchema) -> None:
    older = log.begin(1)
    older.write(0, *changes(schema, "+I 1 a"))
    older.flush()
    later = committed(log, schema, "+I 2 b")

    assert log.latest_offsets().of(0) == 0
    assert log_texts(log) == []
    assert log.is_committed(later)
    older.abort()
    assert log_texts(log) == ["+I 2 b"]


def test_flush_tells_the_range_of_every_bucket_written(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 0 x", bucket=1)
    transaction = log.begin(0)
    transaction.write(1, *changes(schema, "+I 1 a, +I 2 b"))
    transaction.write(0, *changes(schema, "+I 3 c"))
    transaction.write(1, *changes(schema, "+I 4 d"))

    written = transaction.flush()

    assert written == (
        WrittenRange(bucket=0, first_offset=0, next_offset=1),
        WrittenRange(bucket=1, first_offset=2, next_offset=5),
    )


def test_a_transaction_without_writes_flushes_nothing_and_ends_either_way(log: LogStore) -> None:
    transaction = log.begin(0)

    assert transaction.flush() == ()
    assert log.end(transaction.handle, commit=True) is EndOutcome.ENDED
    assert log.end(log.begin(0).handle, commit=False) is EndOutcome.ENDED


def test_writing_no_rows_leaves_no_trace(log: LogStore, schema: TableSchema) -> None:
    rows, kinds = changes(schema, "+I 1 a")
    transaction = log.begin(0)

    transaction.write(0, rows.slice(0, 0), kinds.slice(0, 0))

    assert transaction.flush() == ()


def test_ending_twice_the_same_way_is_ended_both_times(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    transaction.flush()

    outcomes = [log.end(transaction.handle, commit=True) for _ in range(3)]

    assert outcomes == [EndOutcome.ENDED] * 3


@pytest.mark.parametrize("commit", [True, False])
def test_ending_the_other_way_afterwards_is_fenced(log: LogStore, schema: TableSchema, *, commit: bool) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    (written,) = transaction.flush()
    log.end(transaction.handle, commit=commit)

    assert log.end(transaction.handle, commit=not commit) is EndOutcome.FENCED
    assert log.is_committed(written) is commit


def test_a_successor_aborts_what_the_slot_left_open_and_fences_its_writer(log: LogStore, schema: TableSchema) -> None:
    sleeper = log.begin(0)
    sleeper.write(0, *changes(schema, "+I 1 a"))
    (written,) = sleeper.flush()

    successor = log.begin(0)

    assert log.end(sleeper.handle, commit=True) is EndOutcome.FENCED
    assert not log.is_committed(written)
    with pytest.raises(LeaseLostError, match="begin again with a new lease"):
        write_and_flush(sleeper, schema)
    successor.write(0, *changes(schema, "+I 2 b"))
    successor.flush()
    log.end(successor.handle, commit=True)
    assert log_texts(log) == ["+I 2 b"]


def test_a_fenced_commit_that_had_happened_is_found_in_the_log(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    (written,) = transaction.flush()
    log.end(transaction.handle, commit=True)
    log.begin(0)

    assert log.end(transaction.handle, commit=True) is EndOutcome.FENCED
    assert log.is_committed(written)


def test_writing_after_somebody_else_ended_the_transaction_loses_the_lease(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    transaction.flush()
    log.end(transaction.handle, commit=False)

    with pytest.raises(LeaseLostError):
        write_and_flush(transaction, schema)
    assert log_texts(log) == []


def test_every_transaction_has_a_handle_of_its_own(log: LogStore, schema: TableSchema) -> None:
    handles = [log.begin(slot).handle for slot in (0, 1, 0)]

    assert len(set(handles)) == 3
    assert handles[0].transactional_id == handles[2].transactional_id != handles[1].transactional_id


def test_many_transactions_end_side_by_side(log: LogStore, schema: TableSchema) -> None:
    transactions = [log.begin(slot) for slot in range(6)]
    for number, transaction in enumerate(transactions):
        transaction.write(number % 2, *changes(schema, f"+I {number} a"))
        transaction.flush()
    log.begin(5)
    handles = tuple(transaction.handle for transaction in transactions)

    outcomes = log.end_all(handles, commit=True)

    assert outcomes == (EndOutcome.ENDED,) * 5 + (EndOutcome.FENCED,)
    assert {change.row[0] for change in read_log(log)} == {0, 1, 2, 3, 4}
    assert log.end_all((), commit=True) == ()


def test_another_store_of_the_table_ends_the_transaction_and_reads_it(
    open_log: OpenLog, log: LogStore, schema: TableSchema
) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    transaction.flush()
    other = open_log(schema)

    assert other.end(transaction.handle, commit=True) is EndOutcome.ENDED
    assert log_texts(other) == ["+I 1 a"]


def test_records_of_a_repair_carry_the_snapshot_they_repair(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a, +I 2 b"), repairs=41)
    transaction.write(0, *changes(schema, "+I 3 c"))
    transaction.flush()
    log.end(transaction.handle, commit=True)

    assert [(change.row[0], change.repairs) for change in read_log(log)] == [(1, 41), (2, 41), (3, None)]


def test_a_read_reports_every_bucket_up_to_its_end(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 1 a")
    latest = log.latest_offsets()

    reached = {batch.bucket: batch.next_offset for batch in log.read(LogOffsets())}

    assert reached == {0: latest.of(0), 1: latest.of(1)} == {0: 2, 1: 0}


def test_a_read_ends_where_it_is_told_to_and_goes_on_from_there(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 1 a, +I 2 b, +I 3 c")
    committed(log, schema, "+I 4 d")
    cuts = [0, 1, 2, 4, log.latest_offsets().of(0)]

    pieces = [log_texts(log, LogOffsets({0: start}), LogOffsets({0: stop})) for start, stop in itertools.pairwise(cuts)]

    assert pieces == [["+I 1 a"], ["+I 2 b"], ["+I 3 c"], ["+I 4 d"]]


def test_next_offset_of_every_batch_resumes_exactly_there(log: LogStore, schema: TableSchema) -> None:
    for number in range(5):
        committed(log, schema, f"+I {number} a, +U {number} b", bucket=number % 2)
    whole = read_log(log)

    for seen in range(1, len(list(log.read(LogOffsets()))) + 1):
        position = LogOffsets()
        for batch in itertools.islice(log.read(LogOffsets()), seen):
            position = position.advanced_to({batch.bucket: batch.next_offset})
        rest = read_log(log, position)
        assert rest == [change for change in whole if change.offset >= position.of(change.bucket)]


def test_only_the_buckets_asked_for_are_read(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 1 a", bucket=0)
    committed(log, schema, "+I 2 b", bucket=1)

    batches = list(log.read(LogOffsets(), buckets=(1,)))

    assert {batch.bucket for batch in batches} == {1}
    assert [change.row for change in read_log(log, buckets=(1,))] == [(2, "b")]


def test_batches_have_the_types_of_the_table_even_without_rows(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 1 a")

    for batch in log.read(LogOffsets()):
        assert batch.rows.schema == schema.arrow_schema
        types = [column.type for column in (batch.kinds, batch.offsets, batch.timestamps, batch.repairs)]
        assert types == [pa.int8(), pa.int64(), pa.int64(), pa.int64()]
        assert {len(c) for c in (batch.kinds, batch.offsets, batch.timestamps, batch.repairs)} == {len(batch.rows)}


def test_reading_past_what_is_committed_says_to_wait(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    transaction.flush()

    with pytest.raises(UnavailableError, match="committed up to 0 only"):
        list(log.read(LogOffsets(), LogOffsets({0: 1})))


def test_a_position_inside_an_open_transaction_waits_there(log: LogStore, schema: TableSchema) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(schema, "+I 1 a"))
    (written,) = transaction.flush()

    batches = list(log.read(LogOffsets({0: written.next_offset}), buckets=(0,)))

    assert [(len(batch.rows), batch.next_offset) for batch in batches] == [(0, written.next_offset)]


def test_a_position_beyond_the_log_is_no_silent_gap(log: LogStore) -> None:
    with pytest.raises(LogOffsetsExpiredError, match="offset 5"):
        list(log.read(LogOffsets({0: 5})))


def test_expired_offsets_are_refused_and_the_rest_is_read(
    log: LogStore, schema: TableSchema, expire: Callable[[LogStore, LogOffsets], None]
) -> None:
    gone = committed(log, schema, "+I 1 a, +I 2 b")
    committed(log, schema, "+I 3 c, +I 4 d")
    expire(log, LogOffsets({0: 4}))

    assert log.earliest_offsets() == LogOffsets({0: 4, 1: 0})
    assert log_texts(log) == ["+I 4 d"]
    with pytest.raises(LogOffsetsExpiredError, match=r"log\.retention"):
        list(log.read(LogOffsets({0: 3})))
    with pytest.raises(LogOffsetsExpiredError):
        log.is_committed(gone)


def test_a_bucket_that_the_log_does_not_have_is_refused(log: LogStore) -> None:
    with pytest.raises(InvalidInputError, match="has 2 partitions, but bucket 2 was asked for"):
        log.is_committed(WrittenRange(bucket=2, first_offset=0, next_offset=1))
    with pytest.raises(InvalidInputError, match="has 2 partitions, but bucket 2 was asked for"):
        list(log.read(LogOffsets(), buckets=(2,)))


def test_offsets_at_a_time_are_those_of_the_first_record_since(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 1 a")
    (batch,) = [batch for batch in log.read(LogOffsets()) if len(batch.rows)]
    written_at = batch.timestamps[0].as_py()

    assert log.offsets_at(0).of(0) == 0
    assert log.offsets_at(written_at).of(0) == 0
    assert log.offsets_at(written_at + 3_600_000) == log.latest_offsets()


def test_creating_twice_keeps_what_is_there(log: LogStore, schema: TableSchema, open_log: OpenLog) -> None:
    committed(log, schema, "+I 1 a")

    log.create()
    open_log(schema).create()

    assert log_texts(log) == ["+I 1 a"]


def test_the_log_of_another_table_is_neither_taken_nor_dropped(
    log: LogStore, schema: TableSchema, open_log: OpenLog
) -> None:
    committed(log, schema, "+I 1 a")
    other = open_log(schema, table_uuid="another-table")

    with pytest.raises(AlreadyExistsError, match=r"log\.kafka\.topic"):
        other.create()
    with pytest.raises(NotFoundError, match="was kept"):
        other.drop()
    assert log_texts(log) == ["+I 1 a"]


def test_a_log_with_other_buckets_is_refused(log: LogStore, open_log: OpenLog) -> None:
    with pytest.raises(AlreadyExistsError, match=r"2 partitions.* 3 buckets"):
        open_log(log_schema(buckets=3)).create()


def test_dropping_is_repeatable_and_a_log_made_anew_is_empty(log: LogStore, schema: TableSchema) -> None:
    committed(log, schema, "+I 1 a")

    log.drop()
    log.drop()
    with pytest.raises(NotFoundError):
        log.latest_offsets()
    log.create()

    assert log.latest_offsets() == LogOffsets({0: 0, 1: 0})
    committed(log, schema, "+I 2 b")
    assert log_texts(log) == ["+I 2 b"]


def test_description_names_the_log_and_its_retention(open_log: OpenLog, schema: TableSchema) -> None:
    log = open_log(schema, retention_ms=86_400_000)
    log.create()

    described = log.description()

    assert described["log.system"] in ("memory", "kafka")
    assert described["log.kafka.topic"]
    assert described["log.retention"] == "86400000 ms"


def test_all_mode_keeps_the_row_before_an_update(open_log: OpenLog) -> None:
    schema = log_schema(key=False)
    log = open_log(schema)
    log.create()
    committed(log, schema, "+I 1 a, -U 1 a, +U 1 b, -U 9 z, -D 1 b")

    assert [(c.kind, *c.row, c.offset) for c in read_log(log)] == [
        ("+I", 1, "a", 0),
        ("-U", 1, "a", 1),
        ("+U", 1, "b", 1),
        ("-D", 9, "z", 2),
        ("-D", 1, "b", 3),
    ]


def write_and_flush(transaction: object, schema: TableSchema) -> None:
    transaction.write(0, *changes(schema, "+I 9 z"))  # type: ignore[attr-defined]
    transaction.flush()  # type: ignore[attr-defined]


def test_what_an_appender_writes_is_seen_at_once_and_needs_no_end(log: LogStore, schema: TableSchema) -> None:
    appender = log.open_appender()
    appender.write(0, *changes(schema, "+I 1 a, -D 1 a"))
    appender.write(0, *changes(schema, "+I 2 b"))
    appender.write(1, *changes(schema, "+I 3 c"))

    assert appender.finish() == (
        WrittenRange(bucket=0, first_offset=0, next_offset=3),
        WrittenRange(bucket=1, first_offset=0, next_offset=1),
    )
    assert log_texts(log) == ["+I 1 a", "-D 1 a", "+I 2 b", "+I 3 c"]
    assert log.latest_offsets() == LogOffsets({0: 3, 1: 1})


def test_what_an_appender_wrote_stays_when_it_is_given_up(log: LogStore, schema: TableSchema) -> None:
    appender = log.open_appender()
    appender.write(0, *changes(schema, "+I 1 a"))
    appender.give_up()
    later = log.open_appender()
    later.write(0, *changes(schema, "+I 2 b"))
    later.finish()

    assert log_texts(log) == ["+I 1 a", "+I 2 b"]


def test_appenders_write_side_by_side_and_one_after_the_other(log: LogStore, schema: TableSchema) -> None:
    for turn in range(3):
        first, second = log.open_appender(), log.open_appender()
        first.write(0, *changes(schema, f"+I {turn} a"))
        first.finish()
        second.write(0, *changes(schema, f"+I {turn} b"))
        second.finish()

    assert log_texts(log) == [f"+I {turn} {writer}" for turn in range(3) for writer in "ab"]


def test_a_fresh_appender_finishes_with_nothing_written(log: LogStore) -> None:
    assert log.open_appender().finish() == ()


def test_a_log_made_anew_has_another_id_and_does_not_take_offsets_of_before(
    log: LogStore, schema: TableSchema, open_log: OpenLog
) -> None:
    committed(log, schema, "+I 1 a")
    before = log.latest_offsets()
    log.drop()
    log.create()
    recreated = open_log(schema)
    committed(recreated, schema, "+I 2 b")
    committed(recreated, schema, "+I 3 c")

    assert recreated.log_id() not in (None, before.log_id)
    assert recreated.latest_offsets().log_id == recreated.log_id()
    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        list(recreated.read(before))
    assert log_texts(recreated) == ["+I 2 b", "+I 3 c"]
