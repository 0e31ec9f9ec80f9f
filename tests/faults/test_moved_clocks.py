"""Writers' clocks that are hours ahead or behind affect neither leases, order, log nor expiry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from local_kafka import LocalKafka
from storage_lib import DynamicTable, InvalidInputError, StreamPosition, UnavailableError
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from tests.support.committed_orders import assert_every_start_leads_to_the_table, committed_log
from tests.support.moved_clock import moved_environment
from tests.support.orders_table import NAME, applied, content, orders, rows, streamed

pytestmark = [pytest.mark.kafka, pytest.mark.integration]
HOURS = {"ahead": 30, "right": 0, "behind": -30}


@pytest.fixture
def tables(kafka: LocalKafka, tmp_path: Path) -> Iterator[dict[str, DynamicTable]]:
    """Open one table as three machines whose clocks differ."""
    yield tables_of(kafka, tmp_path)
    close_connections()


def tables_of(kafka: LocalKafka, directory: Path, **options: str) -> dict[str, DynamicTable]:
    said = {"log.kafka.bootstrap.servers": kafka.bootstrap_servers}
    catalogs = {
        name: WarehouseCatalog(str(directory / "warehouse"), said, environment=moved_environment(hours * 3600))
        for name, hours in HOURS.items()
    }
    topic = f"clocks-{os.urandom(6).hex()}"
    orders(catalogs["ahead"], **{"log.kafka.topic": topic, "bucket": "2", "lease.wait-timeout": "120 s", **options})
    return {name: catalog.load_table(NAME) for name, catalog in catalogs.items()}


def test_files_and_log_have_the_order_of_the_leases(tables: dict[str, DynamicTable], kafka: LocalKafka) -> None:
    truth: list[str] = []
    for price in range(1, 4):
        for name, table in tables.items():
            change = f"+U a 1 {price * 100 + len(name)}"
            table.append(rows(change))
            truth.append(change)

    assert committed_log(tables["right"], kafka.bootstrap_servers) == truth
    assert content(tables["behind"]) == applied(truth)
    assert_every_start_leads_to_the_table(tables["ahead"], untracked="u")


def test_concurrent_writers_wait_for_each_other(tables: dict[str, DynamicTable], kafka: LocalKafka) -> None:
    def write(name: str) -> None:
        for price in range(3):
            tables[name].append(rows(f"+U a 1 {price}", f"+U b {len(name)} {price}"))

    with ThreadPoolExecutor(len(tables)) as threads:
        list(threads.map(write, tables))

    log = committed_log(tables["right"], kafka.bootstrap_servers)
    assert len(log) == 2 * 3 * len(tables)
    assert applied(log) == content(tables["right"])


def test_a_topic_that_takes_no_record_of_the_future_says_so(tables: dict[str, DynamicTable], kafka: LocalKafka) -> None:
    """A topic created before the time limits were lifted may still have such a limit."""
    log = tables["ahead"].log
    assert log is not None
    entry = ConfigEntry("message.timestamp.after.max.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", log.description()["log.kafka.topic"], incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()

    with pytest.raises(InvalidInputError, match=r"set its clock, or the topic's message\.timestamp\.after"):
        tables["ahead"].append(rows("+I a 1 1"))


def test_no_clock_makes_a_live_holders_lease_look_expired(kafka: LocalKafka, tmp_path: Path) -> None:
    tables = tables_of(kafka, tmp_path, **{"lease.wait-timeout": "200 ms"})
    order = tables["behind"].new_write().begin(commit_user="holder")

    with pytest.raises(UnavailableError, match="holder"):
        tables["ahead"].append(rows("+I a 1 1"))

    with tables["behind"].new_write().open_task(order) as write:
        write.write(rows("+I a 2 2"))
        tables["behind"].new_write().commit(order, [write.prepare_commit()], commit_identifier=1)
    assert content(tables["ahead"]) == {"a 2 2"}
    close_connections()


def test_expiry_by_age_and_orphans_leave_what_is_needed(tables: dict[str, DynamicTable]) -> None:
    """To a process whose clock is ahead everything looks old; it still keeps needed snapshots and guards."""
    tables["right"].append(rows("+I a 1 1"))
    source = tables["right"].stream(position=StreamPosition(snapshot_id=1, split_index=0))
    tables["right"].consumers.create("reader", 2)
    for price in range(2, 5):
        tables["behind"].append(rows(f"+U a 1 {price}"))
    ahead = tables["ahead"]
    now = ahead.environment.clock.now_millis()

    result = ahead.maintenance.expire_snapshots(retain_last=1, older_than_millis=now - 3_600_000)
    ahead.maintenance.remove_orphan_files(older_than=timedelta(hours=24), dry_run=False)

    assert result.earliest_id == 2
    assert content(tables["behind"]) == {"a 1 4"}
    source.position = StreamPosition(snapshot_id=2, split_index=0)
    assert applied(streamed(tables["right"], source.position)) == {"a 1 4"}


def test_an_eventual_log_is_tiered_whoevers_clock_wrote_it(kafka: LocalKafka, tmp_path: Path) -> None:
    tables = tables_of(kafka, tmp_path, **{"log.consistency": "eventual"})
    changes = [f"+U a 1 {price}" for price in range(3)]
    for (_, table), change in zip(tables.items(), changes, strict=True):
        table.append(rows(change))
    tables["behind"].maintenance.tier_log()

    assert committed_log(tables["ahead"], kafka.bootstrap_servers) == changes
    assert content(tables["ahead"]) == {"a 1 2"}
    close_connections()
