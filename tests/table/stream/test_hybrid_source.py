"""Stream reads: snapshot then log, each change once, regardless of the reader's start and batch size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storage_lib import InvalidInputError, LogOffsetsExpiredError, MemoryCatalog, StreamPosition
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.orders_table import NAME, applied, content, orders, rows, streamed


def test_full_reads_the_snapshot_and_then_what_comes() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20"))
    source = table.stream()

    first = source.poll()
    table.append(rows("-D a 1 10"))
    second = source.poll()

    assert first is not None
    assert first.num_rows == 2
    assert second is not None
    assert second.column("_row_kind").to_pylist() == ["-D"]
    assert source.poll() is None


def test_full_on_an_empty_table_reads_from_the_beginning_of_its_log() -> None:
    table = orders()
    source = table.stream()
    assert source.poll() is None

    table.append(rows("+I a 1 10"))

    batch = source.poll()
    assert batch is not None
    assert batch.num_rows == 1


def test_latest_reads_only_what_comes() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    source = table.stream(startup="latest")
    assert source.poll() is None

    table.append(rows("+I a 2 20"))

    batch = source.poll()
    assert batch is not None
    assert batch.column("id").to_pylist() == [2]


@pytest.mark.parametrize("log_system", ["kafka", "none"])
@pytest.mark.parametrize("by", ["argument", "option"])
def test_latest_starts_when_the_stream_is_opened_not_at_its_first_poll(log_system: str, by: str) -> None:
    options = {"log.system": log_system} | ({"log.scan": "latest"} if by == "option" else {})
    table = orders(None, **options)
    table.append(rows("+I a 1 10"))
    source = table.stream() if by == "option" else table.stream(startup="latest")

    table.append(rows("+I a 2 20"))

    batch = source.poll()
    assert batch is not None
    assert batch.column("id").to_pylist() == [2]


def test_a_stream_plan_looks_up_no_start() -> None:
    assert orders().new_read().stream(startup="latest").position is None


@pytest.mark.parametrize("log_system", ["kafka", "none"])
def test_from_timestamp_reads_what_was_committed_since(log_system: str) -> None:
    table = orders(None, **{"log.system": log_system})
    table.append(rows("+I a 1 10"))
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(60)
    since = clock.now_millis()
    table.append(rows("+I a 2 20"))

    batch = table.stream(startup="from-timestamp", timestamp=since).poll()

    assert batch is not None
    assert batch.column("id").to_pylist() == [2]


def test_from_timestamp_tells_of_records_that_retention_has_taken() -> None:
    clock = FakeClock()
    table = orders(MemoryCatalog(environment=fake_environment(clock=clock)), **{"log.retention": "1 h"})
    table.append(rows("+I a 1 10"))
    written_at = clock.now_millis()
    clock.pass_time(7200)
    table.append(rows("+I a 2 20"))
    assert isinstance(table.log, MemoryLogStore)
    table.log.expire(LogOffsets({0: 2}))

    with pytest.raises(LogOffsetsExpiredError, match=r"log\.scan\.timestamp-millis"):
        table.stream(startup="from-timestamp", timestamp=written_at).poll()

    batch = table.stream(startup="from-timestamp", timestamp=clock.now_millis() - 3_599_000).poll()
    assert batch is not None
    assert batch.column("id").to_pylist() == [2]


def test_from_timestamp_without_a_timestamp_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"log\.scan\.timestamp-millis"):
        orders().stream(startup="from-timestamp")


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="full, latest, from-timestamp"):
        orders().stream(startup="earliest")


@pytest.mark.parametrize("log_system", ["kafka", "none"])
@pytest.mark.parametrize("max_rows", [1, 3, None])
def test_small_bites_add_up_to_the_same_changes(log_system: str, max_rows: int | None) -> None:
    table = orders(None, bucket="2", **{"log.system": log_system})
    table.append(rows(*(f"+I a {n} {n}" for n in range(9))))
    source = table.stream()
    position = source.initial_position()
    table.append(rows("-D a 3 3", "+U a 4 44"))
    table.append(rows("+I b 1 1"))

    changes: list[str] = []
    while (end := source.latest_position(position, max_rows=max_rows)) != position:
        # Positions survive a checkpoint.
        start, end = StreamPosition.from_json(position.to_json()), StreamPosition.from_json(end.to_json())
        for split in source.plan(start, end):
            for batch in source.read(split):
                changes += [f"{r['_row_kind']} {r['dt']} {r['id']} {r['price']}" for r in batch.to_pylist()]
        position = end

    assert len(changes) == 12
    assert applied(changes) == content(table)


def test_a_table_without_a_log_streams_its_tracked_appends() -> None:
    table = orders(None, **{"log.system": "none"})
    table.append(rows("+I a 1 10"))
    source = table.stream()
    source.poll()

    table.append(rows("+I a 2 20", "-D a 1 10"))
    table.append(rows("+I a 3 30"), change_tracking=False)
    table.compact()

    batch = source.poll()
    assert batch is not None
    assert sorted(batch.column("_row_kind").to_pylist()) == ["+I", "-D"]
    assert source.poll() is None


def test_a_reader_whose_offsets_have_left_the_log_is_told_so() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    table.append(rows("+I a 2 20"))
    assert isinstance(table.log, MemoryLogStore)
    table.log.expire(table.log.latest_offsets())

    with pytest.raises(LogOffsetsExpiredError):
        streamed(table)


@pytest.mark.parametrize(("log_system", "error"), [("kafka", LogOffsetsExpiredError), ("none", InvalidInputError)])
def test_a_position_that_a_table_made_anew_has_not_come_to_yet_is_refused(
    log_system: str, error: type[Exception]
) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = orders(catalog, **{"log.system": log_system})
    table.append(rows("+I a 1 10"))
    before = table.stream()
    before.poll()
    table.append(rows("+I a 2 10"))
    before.poll()
    catalog.drop_table(NAME)
    table = orders(catalog, **{"log.system": log_system})
    table.append(rows("+I a 3 10"))

    assert before.position is not None
    with pytest.raises(error, match="recreated"):
        table.stream(position=replace(before.position, table_uuid=None)).poll()


@pytest.mark.parametrize("log_system", ["kafka", "none"])
def test_a_position_in_a_table_that_was_made_anew_is_refused_though_it_has_come_that_far(log_system: str) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = orders(catalog, **{"log.system": log_system})
    table.append(rows("+I a 1 10"))
    before = table.stream()
    before.poll()
    assert before.position is not None
    position = StreamPosition.from_json(before.position.to_json())
    catalog.drop_table(NAME)
    table = orders(catalog, **{"log.system": log_system})
    for price in range(3):
        table.append(rows(f"+U a 1 {price}"))

    with pytest.raises(InvalidInputError, match=r"dropped since\. Start the stream again without it"):
        table.stream(position=position).poll()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"snapshot": "x"}', "7"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a stream position"):
        StreamPosition.from_json(text)


def test_what_is_no_position_and_no_time_is_refused_at_once() -> None:
    table = orders()

    with pytest.raises(InvalidInputError, match=r"StreamPosition\.from_json"):
        table.stream(position='{"snapshot": 1}')  # type: ignore[arg-type]
    for millis in (-1, 1 << 70):
        with pytest.raises(InvalidInputError, match="timestamp is"):
            table.stream(startup="from-timestamp", timestamp=millis)
