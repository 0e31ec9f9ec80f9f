"""Two-phase commit under crashes of writers and brokers and under time-outs, with real brokers and real SIGKILLs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_kafka import LocalKafka
from storage_lib.errors import InvalidInputError, LeaseLostError, UnavailableError
from storage_lib.io.environment import SystemClock
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import EndOutcome, TransactionHandle, WrittenRange
from tests.support.broker_restart import kill_and_restart
from tests.support.log_changes import changes, log_schema, log_texts
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.integration]

SCHEMA = log_schema()
ROOT = Path(__file__).parents[3]


def open_store(
    servers: str, topic: str, *, transaction_timeout_ms: int = 60_000, limit_ms: int = 30_000
) -> KafkaLogStore:
    settings = KafkaLogSettings(
        topic=topic,
        table_uuid=f"table-of-{topic}",
        client_options={"bootstrap.servers": servers},
        transaction_timeout_ms=transaction_timeout_ms,
        limit_ms=limit_ms,
    )
    return KafkaLogStore(SCHEMA, settings, SystemClock())


@pytest.fixture
def log(kafka_servers: str, topic: str) -> Iterator[KafkaLogStore]:
    store = open_store(kafka_servers, topic)
    store.create()
    yield store
    store.drop()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[LocalKafka]:
    """Start a broker that may be killed, on a port outside the range of clients' ports, which they could occupy."""
    # A controller accepts a crashed broker again only after its old session has expired.
    quick = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    with LocalKafka(tmp_path / "broker", settings=quick) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _nothing_keeps_trying_to_connect() -> Iterator[None]:
    yield
    close_connections()


def killed_writer(log: KafkaLogStore, row_count: int) -> tuple[TransactionHandle, WrittenRange]:
    """Kill a writer in another process while its transaction is open and flushed."""
    settings = log.settings
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.log_writer_process"]
    with subprocess.Popen(
        [*command, settings.servers, settings.topic, settings.table_uuid, "0", str(row_count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout is not None
        handle, written = json.loads(writer.stdout.readline())
        writer.kill()
    return TransactionHandle(**handle), WrittenRange(**written)


def test_a_committer_ends_what_a_killed_writer_began(log: KafkaLogStore) -> None:
    handle, written = killed_writer(log, 3)

    before = log_texts(log)
    outcome = log.end(handle, commit=True)

    assert (before, outcome) == ([], EndOutcome.ENDED)
    assert log.is_committed(written)
    assert log_texts(log) == ["+I 0 row", "+I 1 row", "+I 2 row"]


def test_a_successor_aborts_what_a_killed_writer_began(log: KafkaLogStore) -> None:
    handle, written = killed_writer(log, 3)

    replay = log.begin(0)
    replay.write(0, *changes(SCHEMA, "+I 9 z"))
    replay.flush()

    assert log.end(handle, commit=True) is EndOutcome.FENCED
    assert log.end(replay.handle, commit=True) is EndOutcome.ENDED
    assert not log.is_committed(written)
    assert log_texts(log) == ["+I 9 z"]


def test_a_transaction_past_its_time_is_fenced_and_not_in_the_log(kafka_servers: str, log: KafkaLogStore) -> None:
    hasty = open_store(kafka_servers, log.settings.topic, transaction_timeout_ms=1_000)
    transaction = hasty.begin(0)
    transaction.write(0, *changes(SCHEMA, "+I 1 a"))
    (written,) = transaction.flush()
    wait_until(lambda: log.latest_offsets().of(0) > written.next_offset)

    assert log.end(transaction.handle, commit=True) is EndOutcome.FENCED
    assert not log.is_committed(written)
    with pytest.raises(LeaseLostError, match=r"log\.transaction\.timeout"):
        write_more(transaction)
    transaction.abort()
    assert log_texts(log) == []


def test_a_timeout_longer_than_the_brokers_is_refused_with_the_remedy(kafka_servers: str, log: KafkaLogStore) -> None:
    patient = open_store(kafka_servers, log.settings.topic, transaction_timeout_ms=2**31 - 1)

    with pytest.raises(InvalidInputError, match=r"log\.transaction\.timeout.*transaction\.max\.timeout\.ms"):
        patient.begin(0)


def test_a_broker_killed_and_restarted_in_the_middle_of_a_transaction(own_broker: LocalKafka) -> None:
    # The client waits while the broker restarts, which takes longer than the default of 30 s on a busy machine.
    log = open_store(own_broker.bootstrap_servers, "restarted", limit_ms=120_000)
    log.create()
    transaction = log.begin(0)
    transaction.write(0, *changes(SCHEMA, "+I 1 a"))
    transaction.flush()

    kill_and_restart(own_broker)
    transaction.write(0, *changes(SCHEMA, "+I 2 b"))
    (written,) = transaction.flush()
    kill_and_restart(own_broker)

    assert log.end(transaction.handle, commit=True) is EndOutcome.ENDED
    assert written == WrittenRange(bucket=0, first_offset=0, next_offset=2)
    assert log_texts(log) == ["+I 1 a", "+I 2 b"]
    after = log.begin(0)
    after.write(0, *changes(SCHEMA, "+I 3 c"))
    after.flush()
    log.end(after.handle, commit=True)
    assert log_texts(log) == ["+I 1 a", "+I 2 b", "+I 3 c"]


def test_records_of_a_transaction_that_the_broker_forgot_to_abort_are_never_seen(tmp_path: Path) -> None:
    """A restarted broker may abort without a marker. Here a late record follows the marker."""
    settings = {"transaction.partition.verification.enable": "false"}
    with LocalKafka(tmp_path / "broker", settings=settings) as broker:
        log = open_store(broker.bootstrap_servers, "forgotten")
        log.create()
        crashed = log.begin(0)
        crashed.write(0, *changes(SCHEMA, "+I 1 a"))
        crashed.flush()
        assert log.end(crashed.handle, commit=False) is EndOutcome.ENDED
        crashed.write(0, *changes(SCHEMA, "+I 2 b"))
        crashed.flush()
        assert log.latest_offsets().of(0) == 2, "it hangs"

        after = log.begin(0)
        after.write(0, *changes(SCHEMA, "+I 3 c"))
        (written,) = after.flush()
        assert log.end(after.handle, commit=True) is EndOutcome.ENDED

        assert log_texts(log) == ["+I 3 c"]
        assert log.is_committed(written)


def test_a_broker_that_goes_away_for_good_is_unavailable_in_bounded_time(own_broker: LocalKafka) -> None:
    log = open_store(own_broker.bootstrap_servers, "gone", limit_ms=2_000)
    log.create()
    transaction = log.begin(0)
    transaction.write(0, *changes(SCHEMA, "+I 1 a"))
    transaction.flush()
    own_broker.kill()

    for act in (
        lambda: write_more(transaction),
        lambda: log.end(transaction.handle, commit=True),
        lambda: log.begin(1),
        log.latest_offsets,
        lambda: list(log.read(LogOffsets())),
    ):
        started = time.monotonic()
        with pytest.raises(UnavailableError, match=own_broker.bootstrap_servers):
            act()
        assert time.monotonic() - started < 25, "sooner than by the limit that it has when nobody says one"
    transaction.abort()


def test_a_kafka_that_is_down_from_the_start_is_named_with_the_remedy() -> None:
    log = open_store("127.0.0.1:1", "down", limit_ms=1_000)
    started = time.monotonic()

    for act in (log.create, log.drop, log.description, lambda: log.begin(0), log.earliest_offsets):
        with pytest.raises(UnavailableError, match=r"Is Kafka running at 127\.0\.0\.1:1"):
            act()
    assert time.monotonic() - started < 60


def write_more(transaction: object) -> None:
    transaction.write(0, *changes(SCHEMA, "+I 5 e"))  # type: ignore[attr-defined]
    transaction.flush()  # type: ignore[attr-defined]


def test_a_forked_process_does_not_go_on_under_its_parents_sequence_numbers(
    log: KafkaLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(text: str) -> None:
        appender = log.open_appender()
        appender.write(0, *changes(SCHEMA, text))
        appender.finish()

    write("+I 1 a")
    idle = list(log._idle_producers)
    write("+I 2 b")
    # A forked child shares its parent's state: the broker would take its first record for the parent's second.
    log._idle_producers[:] = idle
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    write("+I 3 c")
    monkeypatch.undo()

    assert log_texts(log) == ["+I 1 a", "+I 2 b", "+I 3 c"]


def test_a_broker_killed_and_restarted_between_the_writes_of_an_appender(own_broker: LocalKafka) -> None:
    log = open_store(own_broker.bootstrap_servers, "appended")
    log.create()
    appender = log.open_appender()
    appender.write(0, *changes(SCHEMA, "+I 1 a"))
    kill_and_restart(own_broker)
    appender.write(0, *changes(SCHEMA, "+I 2 b"))
    appender.finish()

    assert log_texts(log) == ["+I 1 a", "+I 2 b"]
