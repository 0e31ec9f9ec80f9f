"""``log.consistency=eventual`` with real processes, a real disk and a real broker. Keys are unique, so rows count."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local_kafka import LocalKafka
from storage_lib import DynamicTable, StreamPosition, open_catalog
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from tests.support.broker_restart import kill_and_restart
from tests.support.orders_table import applied, content, orders, rows, streamed
from tests.support.tiering_process import own_changes, write_to_log

pytestmark = [pytest.mark.kafka, pytest.mark.integration]
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[LocalKafka]:
    """Start a broker that may be killed; see tests/log_store/kafka/test_kafka_crashes.py for its settings."""
    quick = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    with LocalKafka(tmp_path / "broker", settings=quick) as broker:
        yield broker
    close_connections()


class Shop:
    """The table in a private warehouse, and processes that work on it."""

    def __init__(self, directory: Path, servers: str) -> None:
        self._arguments = (str(directory / "warehouse"), servers)
        catalog = open_catalog(self._arguments[0], {"log.kafka.bootstrap.servers": servers})
        topic = f"orders-{os.urandom(6).hex()}"
        options = {"log.kafka.topic": topic, "log.consistency": "eventual", "lease.timeout": "1 s", "bucket": "2"}
        self.table: DynamicTable = orders(catalog, **options)

    @contextmanager
    def process(self, role: str, name: str, rounds: int = 1) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-W", "ignore", "-m", "tests.support.tiering_process", *self._arguments]
        process = subprocess.Popen(
            [*command, role, name, str(rounds)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def check(self, expected: list[str]) -> None:
        """Check that files and log hold ``expected``, each once, as does every snapshot plus the log after it."""
        log = streamed(self.table)
        assert sorted(log) == sorted(expected)
        assert content(self.table) == applied(log)
        assert sum(self.table.inspect.files().column("record_count").to_pylist()) == len(expected)
        for snapshot_id in self.table.inspect.snapshots().column("snapshot_id").to_pylist():
            start = StreamPosition(snapshot_id=snapshot_id, split_index=0)
            assert sorted(streamed(self.table, start)) == sorted(expected), f"from snapshot {snapshot_id}"


@pytest.fixture
def shop(tmp_path: Path, kafka: LocalKafka) -> Shop:
    return Shop(tmp_path, kafka.bootstrap_servers)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_what_a_writer_logged_before_it_was_killed_gets_into_the_files(shop: Shop) -> None:
    with shop.process("log", "1", 3) as writer:
        assert line_of(writer) == "written"
        writer.kill()

    shop.table.maintenance.tier_log()

    shop.check([change for number in range(3) for change in own_changes("1", number)])


@pytest.mark.parametrize("role", ["stall-before", "stall-after"])
def test_a_tierer_killed_around_its_snapshot_puts_nothing_into_the_files_twice(shop: Shop, role: str) -> None:
    write_to_log(shop.table, own_changes("1", 1))
    with shop.process(role, "1") as tierer:
        assert line_of(tierer) == "stalled"
        write_to_log(shop.table, own_changes("1", 2))
        tierer.kill()

    shop.table.maintenance.tier_log(compact=False)

    shop.check([*own_changes("1", 1), *own_changes("1", 2)])


def test_a_stalled_tierer_that_was_replaced_finds_out_and_leaves_nothing(shop: Shop) -> None:
    write_to_log(shop.table, own_changes("1", 1))
    with shop.process("stall-before", "1") as sleeper:
        assert line_of(sleeper) == "stalled"
        os.kill(sleeper.pid, signal.SIGSTOP)
        assert shop.table.maintenance.tier_log(compact=False) is not None
        os.kill(sleeper.pid, signal.SIGCONT)
        output, _ = sleeper.communicate("go on\n", timeout=240)

    assert output.strip() == "LeaseLostError"
    shop.check(own_changes("1", 1))


def test_tierers_that_race_beside_writers_put_each_record_into_the_files_once(shop: Shop) -> None:
    write_to_log(shop.table, own_changes("3", 0))  # work for the tierers even if the writers start late
    with (
        shop.process("log", "1", 20) as first,
        shop.process("log", "2", 20) as second,
        shop.process("tier", "1", 8) as tierer,
        shop.process("tier", "2", 8) as other,
    ):
        assert (line_of(first), line_of(second)) == ("written", "written")
        assert (tierer.wait(240), other.wait(240)) == (0, 0)

    shop.table.maintenance.tier_log(compact=False)

    assert {f"tierer-{name}" for name in "12"} & set(shop.table.inspect.snapshots().column("commit_user").to_pylist())
    raced = [change for name in "12" for number in range(20) for change in own_changes(name, number)]
    shop.check([*own_changes("3", 0), *raced])


def test_a_broker_killed_between_writes_and_tiering_costs_nothing(own_broker: LocalKafka, tmp_path: Path) -> None:
    shop = Shop(tmp_path, own_broker.bootstrap_servers)
    write_to_log(shop.table, own_changes("1", 1))
    kill_and_restart(own_broker)
    # The same producer continues with its previous sequence numbers.
    write_to_log(shop.table, own_changes("1", 2))
    shop.table.maintenance.tier_log(compact=False)
    write_to_log(shop.table, own_changes("1", 3))
    kill_and_restart(own_broker)

    shop.table.maintenance.tier_log(compact=False)

    shop.check([change for number in (1, 2, 3) for change in own_changes("1", number)])


def test_a_row_of_a_killed_and_repeated_write_is_in_the_log_twice_and_in_the_table_once(shop: Shop) -> None:
    with shop.process("log", "1") as writer:
        assert line_of(writer) == "written"
        writer.kill()

    shop.table.append(rows(*own_changes("1", 0)))

    assert sorted(streamed(shop.table)) == sorted(own_changes("1", 0) * 2)
    assert content(shop.table) == {"a 1000 0", "b 1000 0"}
