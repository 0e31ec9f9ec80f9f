"""A fault at any request of a commit to the broker neither loses nor duplicates rows, nor commits half of them.

A writer's commit sends more than ten requests. At each of them, in turn, the writer is killed, frozen past its lease,
or loses the response; or the broker is killed. Another writer commits, and the first one's commit is repeated, in
either order. Then every commit must be in the files once and in the topic once, as read by an independent client, in
the same order.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeTransactionsRequest

from local_kafka import LocalKafka
from storage_lib import DynamicTable, open_catalog
from storage_lib.errors import RetryableError
from storage_lib.io.environment import SystemClock
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from tests.support.broker_restart import kill_and_restart
from tests.support.committed_orders import assert_every_start_leads_to_the_table, committed_log, of_key
from tests.support.deep_tests import thinned
from tests.support.faulty_file_io import SimulatedCrash
from tests.support.mortal_writer import USER, is_frozen, started
from tests.support.orders_table import applied, content, orders
from tests.support.request_trap import Moment, request_trap
from tests.support.table_writing_process import own_rows
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.integration]

TRANSACTIONAL = frozenset({"InitProducerIdRequest", "AddPartitionsToTxnRequest", "ProduceRequest", "EndTxnRequest"})


class Shop:
    """One table across all crashes; ``commits`` are the acknowledged ones, as (writer, number)."""

    def __init__(self, warehouse: Path, servers: str, **options: str) -> None:
        self.warehouse, self.servers = str(warehouse), servers
        catalog = open_catalog(self.warehouse, {"log.kafka.bootstrap.servers": servers})
        topic = f"orders-{os.urandom(6).hex()}"
        defaults = {"log.kafka.topic": topic, "bucket": "2", "lease.timeout": "500 ms", "write-only": "true"}
        self.table: DynamicTable = orders(catalog, **defaults | options)
        self.commits: list[tuple[str, int]] = []

    def commit(self, name: str, number: int) -> None:
        """Commit ``number`` of a writer; repeat it as long as the error permits. Writer 1 is the one that crashes."""
        user = USER if name == "1" else name
        while True:
            try:
                self.table.append(own_rows(name, number), commit_user=user, commit_identifier=number)
            except RetryableError:
                continue
            break
        self.commits.append((name, number))

    def check(self) -> None:
        log = committed_log(self.table, self.servers)
        assert sorted(log) == sorted(text for each in self.commits for text in _texts(*each))
        assert content(self.table) == applied(log)
        history = self.table.context.file_store.snapshots
        snapshots = [history.load(each) for each in range(1, (history.latest_id() or 0) + 1)]
        users = {USER: "1", "2": "2"}
        ours = [each for each in snapshots if each.commit_user in users]
        in_order = [_texts(users[each.commit_user], each.commit_identifier)[1] for each in ours]
        assert of_key(log, "a 0") == in_order
        assert_every_start_leads_to_the_table(self.table, "untracked")


@pytest.fixture
def shop(tmp_path: Path, kafka: LocalKafka) -> Shop:
    return Shop(tmp_path / "warehouse", kafka.bootstrap_servers)


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[LocalKafka]:
    """Start a broker that may be killed; see tests/log_store/kafka/test_kafka_crashes.py for its settings."""
    quick = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    with LocalKafka(tmp_path / "broker", settings=quick) as broker:
        yield broker
    close_connections()


def _texts(name: str, number: int) -> list[str]:
    return [f"{row['_row_kind']} {row['dt']} {row['id']} {row['price']}" for row in own_rows(name, number).to_pylist()]


@pytest.mark.parametrize("step", thinned([2, 1]))
def test_a_writer_killed_at_any_request_is_survived(shop: Shop, step: int) -> None:
    deaths = 0
    while True:
        process, _ = started(shop, deaths + 1, at=deaths * step + 1, moment=Moment.ANSWERED)
        process.join(240)
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        deaths += 1
        # The restarted writer takes over its own lease at once; other writers when the lease has expired.
        for name in ("1", "2") if deaths % 2 else ("2", "1"):
            shop.commit(name, deaths)
    shop.commit("1", deaths + 1)

    assert deaths * step > 8, "the traps have become blind"
    shop.check()


@pytest.mark.parametrize("step", thinned([3, 1]))
def test_a_writer_frozen_at_any_request_past_its_lease_changes_nothing_when_it_wakes_up(shop: Shop, step: int) -> None:
    said: list[object] = []
    while not said or isinstance(said[-1], str):
        number, at = len(said) + 1, len(said) * step + 1
        process, answer = started(shop, number, at=at, moment=Moment.UNSENT, stroke=signal.SIGSTOP)
        wait_until(lambda process=process: is_frozen(process) or not process.is_alive())  # type: ignore[misc]
        shop.commit("2", number)
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGCONT)
        assert answer.poll(240), "it never woke up"
        said.append(answer.recv())
        process.join(240)
        shop.commit("1", number)

    assert "LeaseLostError" in said
    shop.check()


@pytest.mark.parametrize("moment", [Moment.LOST, Moment.REFUSED])
def test_a_lost_connection_at_any_request_costs_a_repetition_at_most(shop: Shop, moment: Moment) -> None:
    at, count = 0, 1
    while at < count:
        at += 1
        with request_trap(at=at, moment=moment) as sent:
            shop.commit("1", at)
        count = max(count, len(sent))
    assert count >= 6, "the traps have become blind"
    shop.check()


@pytest.mark.parametrize("kinds", thinned([TRANSACTIONAL, None]), ids=["of a transaction", "all"])
def test_a_broker_killed_at_each_kind_of_request_loses_nothing(
    own_broker: LocalKafka, tmp_path: Path, kinds: frozenset[str] | None
) -> None:
    shop = Shop(tmp_path / "warehouse", own_broker.bootstrap_servers)

    with request_trap(at=None, moment=Moment.UNSENT) as sent:
        shop.commit("1", 1)
    places = {kind: place for place, kind in enumerate(sent, start=1) if kinds is None or kind in kinds}
    for number, place in enumerate(places.values(), start=2):
        moment = Moment.LOST if number % 2 else Moment.ANSWERED
        with request_trap(at=place, moment=moment, act=lambda: kill_and_restart(own_broker)):
            shop.commit("1", number)
        shop.commit("2", number)

    assert places.keys() >= TRANSACTIONAL
    shop.check()


def test_a_broker_that_is_gone_for_longer_than_a_transaction_may_take_costs_a_repair(
    own_broker: LocalKafka, tmp_path: Path
) -> None:
    shop = Shop(tmp_path / "warehouse", own_broker.bootstrap_servers, **{"log.transaction.timeout": "1 s"})
    shop.commit("2", 1)
    shop.commit("2", 2)
    with pytest.raises(SimulatedCrash), request_trap(at="EndTxnRequest", moment=Moment.UNSENT, act=_die):
        shop.commit("1", 1)
    kill_and_restart(own_broker)
    # Wait for its marker in the topic: a restarted broker may forget it (docs/guarantees.md).
    wait_until(lambda: transactions_of_the_newest_snapshot(shop.table) == {"CompleteAbort"})
    assert sorted(committed_log(shop.table, shop.servers)) == sorted(_texts("2", 1) + _texts("2", 2))
    shop.commit("2", 3)
    shop.commit("1", 1)

    shop.check()


def _die() -> None:
    raise SimulatedCrash


def transactions_of_the_newest_snapshot(table: DynamicTable) -> set[str]:
    """Return the coordinator's states of the newest snapshot's transactions; empty while the coordinator starts."""
    log, snapshot = table.log, table.context.file_store.snapshots.latest()
    assert isinstance(log, KafkaLogStore)
    assert snapshot is not None
    part = SnapshotLogProperties.of_snapshot(snapshot)
    assert part is not None
    ids = [each.handle.transactional_id for each in part.transactions]
    assert ids
    retries = log._cluster.retries(SystemClock(), "look")
    (node,) = set(log._cluster.coordinators(ids, retries).values())
    try:
        states = log._cluster.ask(node, DescribeTransactionsRequest(transactional_ids=ids)).transaction_states
    except KafkaError:
        return set()
    return {state.transaction_state for state in states}
