"""Processes that write one table at the same time lose and repeat nothing, and both stores agree.

The disk and the broker are real, and an independent client reads the log.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from local_kafka import LocalKafka
from storage_lib import DynamicTable, InvalidInputError, open_catalog
from storage_lib.file_store.snapshot.snapshot import CommitKind
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from tests.support.breaking_log import BreakingLog
from tests.support.broker_restart import kill_and_restart
from tests.support.committed_orders import assert_every_start_leads_to_the_table, committed_log, of_key
from tests.support.faulty_file_io import SimulatedCrash
from tests.support.orders_table import content, orders, reopened, rows, streamed
from tests.support.table_writing_process import own_rows
from tests.support.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[LocalKafka]:
    """Start a broker that may be killed; see tests/log_store/kafka/test_kafka_crashes.py for its settings."""
    quick = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    with LocalKafka(tmp_path / "broker", settings=quick) as broker:
        yield broker
    close_connections()


def _table(warehouse: str, servers: str, **options: str) -> DynamicTable:
    catalog = open_catalog(warehouse, {"log.kafka.bootstrap.servers": servers})
    topic = f"orders-{os.urandom(6).hex()}"
    return orders(catalog, **{"log.kafka.topic": topic, "log.system": "kafka", **options})


@contextmanager
def _process(warehouse: str, servers: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.table_writing_process", warehouse, servers]
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _finish(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    return output


def _texts(name: str, identifier: int) -> list[str]:
    return [
        f"{row['_row_kind']} {row['dt']} {row['id']} {row['price']}" for row in own_rows(name, identifier).to_pylist()
    ]


def _commits_in_order(table: DynamicTable) -> list[tuple[str, int]]:
    """Return the appends that belong in the log, in snapshot order."""
    history = table.context.file_store.snapshots
    snapshots = [history.load(snapshot_id) for snapshot_id in range(1, (history.latest_id() or 0) + 1)]
    return [
        (each.commit_user, each.commit_identifier)
        for each in snapshots
        if each.commit_kind is CommitKind.APPEND and each.commit_user.isdigit()
    ]


def test_appends_compactions_and_overwrites_of_many_processes_lose_and_repeat_nothing(
    kafka: LocalKafka, warehouse: str
) -> None:
    servers = kafka.bootstrap_servers
    table = _table(warehouse, servers, bucket="2")
    writers, commits = 3, 8
    arguments = [("append", str(n), str(commits)) for n in range(1, writers + 1)]
    arguments += [("compact", "compactor", "15"), ("overwrite", "7", "8")]
    processes = [_process(warehouse, servers, *each) for each in arguments]
    started = [each.__enter__() for each in processes]
    try:
        for process in started:
            _finish(process)
    finally:
        for each in processes:
            each.__exit__(None, None, None)

    log = committed_log(table, servers)
    order = _commits_in_order(table)
    everything = [(str(n), c) for n in range(1, writers + 1) for c in range(1, commits + 1)]
    assert sorted(order) == everything
    assert sorted(log) == sorted(text for each in everything for text in _texts(*each))
    assert of_key(log, "a 0") == [_texts(*each)[1] for each in order]
    newest = int(order[-1][0]) * 1000 + order[-1][1]
    own = {f"{dt} {1000 * int(n) + c} {c}" for n, c in everything for dt in "ab"}
    assert content(table) == {*own, f"a 0 {newest}", "untracked 7 7"}
    assert_every_start_leads_to_the_table(table, "untracked")


def test_a_writer_stopped_in_the_middle_of_its_lease_finds_out_and_leaves_nothing(
    kafka: LocalKafka, warehouse: str
) -> None:
    servers = kafka.bootstrap_servers
    table = _table(warehouse, servers, **{"lease.timeout": "2 s"})
    with _process(warehouse, servers, "stall", "1", "1") as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == "written\n"
        sleeper.send_signal(signal.SIGSTOP)

        started = time.monotonic()
        table.append(own_rows("2", 1), commit_user="2", commit_identifier=1)
        waited = time.monotonic() - started
        sleeper.send_signal(signal.SIGCONT)
        output, errors = sleeper.communicate("go on\n", timeout=240)

    assert output == "LeaseLostError\n", errors
    assert waited >= 2
    assert sorted(committed_log(table, servers)) == sorted(_texts("2", 1))
    assert content(table) == {"a 2001 1", "a 0 2001", "b 2001 1"}
    table.append(own_rows("1", 1), commit_user="1", commit_identifier=1)
    assert of_key(committed_log(table, servers), "a 0") == ["+U a 0 2001", "+U a 0 1001"]
    assert len(list(Path(warehouse).rglob("data-*"))) == 4


def test_a_writer_killed_in_the_middle_of_its_lease_holds_up_neither_writers_nor_readers(
    kafka: LocalKafka, warehouse: str
) -> None:
    servers = kafka.bootstrap_servers
    table = _table(warehouse, servers, bucket="4", **{"lease.timeout": "2 s"})
    with _process(warehouse, servers, "stall", "1", "1") as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "written\n"
        killed.kill()

    table.append(rows("+I a 9 90"))

    assert streamed(table) == ["+I a 9 90"]
    assert committed_log(table, servers) == ["+I a 9 90"]


def _dies_before_its_log_part(table: DynamicTable) -> None:
    assert table.log is not None
    log = BreakingLog(table.log)
    dying = reopened(table, log)
    order = dying.new_write().begin(commit_user="1")
    task = dying.new_write().open_task(order)
    task.write(own_rows("1", 1))
    message = task.prepare_commit()
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        dying.new_write().commit(order, [message], 1)


def test_a_transaction_that_the_broker_timed_out_after_its_snapshot_is_published_again(
    kafka: LocalKafka, warehouse: str
) -> None:
    servers = kafka.bootstrap_servers
    table = _table(warehouse, servers, **{"log.transaction.timeout": "1 s"})
    table.append(rows("+I a 5 50"))
    _dies_before_its_log_part(table)
    part = SnapshotLogProperties.of_snapshot(table.context.file_store.snapshots.load(2))
    assert part is not None
    assert part.offsets is not None
    assert table.log is not None
    written, log = part.offsets.of(0), table.log
    wait_until(lambda: log.latest_offsets().of(0) > written)
    assert committed_log(table, servers) == ["+I a 5 50"]

    reopened(table).append(own_rows("2", 1), commit_user="2", commit_identifier=1)

    expected = ["+I a 5 50", *_texts("1", 1), *_texts("2", 1)]
    assert sorted(committed_log(table, servers)) == sorted(expected)
    assert of_key(committed_log(table, servers), "a 0") == ["+U a 0 1001", "+U a 0 2001"]
    assert_every_start_leads_to_the_table(table, "untracked")


@pytest.mark.kafka
@pytest.mark.integration
def test_a_broker_killed_between_the_snapshot_and_the_end_of_its_transactions(
    own_broker: LocalKafka, warehouse: str
) -> None:
    servers = own_broker.bootstrap_servers
    table = _table(warehouse, servers, bucket="2")
    _dies_before_its_log_part(table)
    kill_and_restart(own_broker)

    reopened(table).append(own_rows("2", 1), commit_user="2", commit_identifier=1)

    assert sorted(committed_log(table, servers)) == sorted([*_texts("1", 1), *_texts("2", 1)])
    assert of_key(committed_log(table, servers), "a 0") == ["+U a 0 1001", "+U a 0 2001"]
    assert_every_start_leads_to_the_table(table, "untracked")


def test_a_row_too_large_for_the_topic_is_refused_with_the_remedy_and_nothing_stays(
    kafka: LocalKafka, warehouse: str
) -> None:
    catalog = open_catalog(warehouse, {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})
    columns = pa.schema([("id", pa.int64()), ("text", pa.string())])
    topic = f"large-{os.urandom(6).hex()}"
    table = catalog.create_table("db.large", columns, primary_key=["id"], options={"log.kafka.topic": topic})
    huge = os.urandom(2_000_000).hex()

    with pytest.raises(InvalidInputError, match=r"max\.message\.bytes"):
        table.append(pa.table({"id": [1, 2], "text": ["small", huge]}))
    table.append(pa.table({"id": [3], "text": ["small"]}))

    assert table.to_arrow().column("id").to_pylist() == [3]
    changes = table.stream(startup="from-timestamp", timestamp=0).poll()
    assert changes is not None
    assert changes.column("id").to_pylist() == [3]
    assert len(list(Path(warehouse).rglob("data-*"))) == 1
