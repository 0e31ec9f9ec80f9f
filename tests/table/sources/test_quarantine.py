"""``source.on-reject=quarantine``: a record is in the table or among its rejected ones, with the same commit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping

import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, reingest
from storage_lib.errors import CorruptFileError, StorageError
from storage_lib.log_store.external.reject_limit import RejectLimit
from tests.support.deep_tests import thinned
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import reopened
from tests.support.raw_topic import NAME, RawTopic

COLUMNS = {"id": "BIGINT NOT NULL", "name": "VARCHAR(5)", "price": "BIGINT NOT NULL"}


def table_of(options: Mapping[str, str] | None = None, *, key: bool = True) -> DynamicTable:
    catalog = MemoryCatalog(environment=fake_environment())
    given = {"log.system": "none", **(options or {})}
    return catalog.create_table("shop.items", COLUMNS, primary_key=["id"] if key else (), options=given)


def change(op: str, before: object, after: object) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op}).encode()


def created(item: int, name: object = "tea", price: object = 1) -> bytes:
    return change("c", None, {"id": item, "name": name, "price": price})


MISFITS: dict[str, Callable[[int], bytes]] = {
    "torn": lambda item: created(item)[:-7],
    "no JSON": lambda _: b"\xff\x00",
    "too long": lambda item: created(item, "teapot"),
    "null in NOT NULL": lambda item: created(item, price=None),
    "text in a number": lambda item: created(item, price="dear"),
    "unknown op": lambda item: change("x", None, {"id": item, "name": "tea", "price": 1}),
    "no row": lambda _: change("c", None, None),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_record_that_does_not_fit_is_stored_and_the_others_are_rows(misfit: str) -> None:
    table, topic = table_of(), RawTopic()
    bad = MISFITS[misfit](2)
    for value in (created(1), bad, created(3)):
        topic.tell(b"key", value)

    result = topic.ingest(table, on_reject="quarantine")

    assert (result.row_count, result.rejected_count, result.skipped_count) == (2, 1, 0)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3]
    (stored,) = table.inspect.rejected().to_pylist()
    place = (stored["source"], stored["topic"], stored["partition"], stored["offset"])
    assert place == (NAME, NAME, 0, 1)
    assert (stored["key"], stored["value"]) == (b"key", bad)
    assert stored["reason"]
    assert table.inspect.source_offsets(NAME) == topic.latest_offsets()


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_failing_reader_names_the_record_and_the_ways_out(misfit: str) -> None:
    table, topic = table_of(), RawTopic()
    topic.tell(None, created(1))
    topic.tell(b"some key", MISFITS[misfit](2))

    with pytest.raises((CorruptFileError, InvalidInputError)) as raised:
        topic.ingest(table)

    for part in ("partition 0", "offset 1", "some key", "source.on-reject=quarantine"):
        assert part in str(raised.value)
    assert table.count() == 1
    assert table.inspect.rejected_count() == 0


def test_a_deletion_from_an_append_only_table_is_stored() -> None:
    table, topic = table_of({"write-mode": "append-only"}, key=False), RawTopic()
    topic.tell(None, created(1))
    topic.tell(None, change("d", {"id": 1, "name": "tea", "price": 1}, None))

    assert topic.ingest(table, on_reject="quarantine").rejected_count == 1

    assert table.count() == 1


def test_a_commit_with_only_rejected_records_moves_the_offset() -> None:
    table, topic = table_of(), RawTopic()
    topic.tell(None, b"torn")
    topic.ingest(table, on_reject="quarantine")

    again = topic.ingest(table, on_reject="quarantine")

    assert again.rejected_count == 0
    assert table.inspect.rejected_count() == 1


def test_a_value_that_is_nowhere_is_stored_when_that_is_known() -> None:
    table, topic = table_of(), RawTopic()
    row = {"id": 1, "name": "__debezium_unavailable_value", "price": 1}
    topic.tell(None, change("u", None, row))
    topic.tell(None, created(2))

    result = topic.ingest(table, on_reject="quarantine")

    assert (result.row_count, result.rejected_count) == (1, 1)
    (stored,) = table.inspect.rejected().to_pylist()
    assert (stored["offset"], stored["column"]) == (0, "name")


@pytest.mark.parametrize(("limit", "bad"), [("5 %", 12), ("11", 12)])
def test_more_than_the_limit_stop_the_reader_before_they_are_committed(limit: str, bad: int) -> None:
    table, topic = table_of(), RawTopic()
    topic.tell(None, created(1))
    topic.ingest(table)
    for _ in range(bad):
        topic.tell(None, b"torn")

    with pytest.raises(InvalidInputError, match=r"option source\.reject-max") as raised:
        topic.ingest(table, on_reject="quarantine", reject_max=limit)

    assert "offset 12" in str(raised.value)
    assert table.inspect.rejected_count() == 0
    assert topic.ingest(table, on_reject="quarantine", reject_max="100 %").rejected_count == bad


def test_the_limit_of_an_hour_counts_what_others_have_stored() -> None:
    table, topic = table_of(), RawTopic()
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    for _ in range(3):
        topic.tell(None, b"torn")
        topic.ingest(table, on_reject="quarantine", reject_max="3")
    topic.tell(None, b"torn")
    with pytest.raises(InvalidInputError, match="4 records in the last hour, more than 3"):
        topic.ingest(table, on_reject="quarantine", reject_max="3")

    clock.pass_time(3601)

    assert topic.ingest(table, on_reject="quarantine", reject_max="3").rejected_count == 1


@pytest.mark.parametrize("text", ["", "many", "-1", "5.5", "101 %", "1 % h"])
def test_a_limit_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"source\.reject-max"):
        RejectLimit.parse(text)


@pytest.mark.parametrize("seed", thinned(range(40), keep=3))
def test_in_equals_accepted_plus_rejected_over_random_batches_with_kills(seed: int) -> None:
    """Each record has its own id, so that the rows tell which records they are of."""
    chance = random.Random(seed)  # noqa: S311  reproducible
    has_log = chance.random() < 0.3
    options = {"log.system": "kafka", "lease.timeout": "5 s"} if has_log else {}
    table = table_of(options, key=chance.random() < 0.6)
    topic = RawTopic(partition_count=chance.choice([1, 3]), batch_size=chance.choice([1, 5, 1000]))
    share = chance.choice([0.0, 0.2, 0.9])
    records: dict[tuple[int, int], bytes] = {}
    good: dict[tuple[int, int], int] = {}
    for step in range(8):
        for _ in range(chance.randrange(30)):
            item, partition = len(records), chance.randrange(topic.partition_count)
            is_bad = chance.random() < share
            value = MISFITS[chance.choice(list(MISFITS))](item) if is_bad else created(item)
            place = (partition, topic.tell(None, value, partition))
            records[place] = value
            if not is_bad:
                good[place] = item
        faults = (
            [Fault(chance.choice(list(FaultKind)[:6]), at=chance.randrange(1, 70))] if chance.random() < 0.5 else []
        )
        actor = reopened_in(FaultyFileIO(table.environment.file_io, *faults), table, names=f"actor{step}x")
        try:
            topic.ingest(actor, on_reject="quarantine", rows_per_commit=chance.choice([1, 7, 1000]))
        except SimulatedCrash:
            pass
        except StorageError:
            if not faults:
                raise
        clock = table.environment.clock
        assert isinstance(clock, FakeClock)
        clock.pass_time(30)
        table = reopened(table)
        _check(table, records, good)
    topic.ingest(table, on_reject="quarantine")
    assert sum(_check(table, records, good)) == len(records)
    remaining = reingest(table).remaining
    assert len(remaining) == len(records) - len(good)


def _check(
    table: DynamicTable, records: dict[tuple[int, int], bytes], good: dict[tuple[int, int], int]
) -> tuple[int, int]:
    reached = table.inspect.source_offsets(NAME)
    read = {place for place in records if reached is not None and place[1] < reached.of(place[0])}
    accepted = sorted(table.to_arrow()["id"].to_pylist())
    assert accepted == sorted(item for place, item in good.items() if place in read)
    rejected = {(each["partition"], each["offset"]): each["value"] for each in table.inspect.rejected().to_pylist()}
    assert rejected == {place: value for place, value in records.items() if place in read and place not in good}
    assert len(rejected) == table.inspect.rejected_count()
    return len(accepted), len(rejected)
